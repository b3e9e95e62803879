#!/bin/bash
# Checks that a release is complete and packs it: build/release.zip and build/MANIFEST.txt.
cd "$(dirname "$0")" || exit
stop() { echo "STOP: $1"; exit 1; }
has() { tr -d '\r' < "$1" | grep -qxF "$2"; }

version=$(cat version.txt)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || stop "version.txt has no version number"
has package.conf "version = $version" || stop "package.conf has another version"
has CHANGES.txt Unreleased && stop "CHANGES.txt still has unreleased entries"
has CHANGES.txt "Version $version" || stop "CHANGES.txt does not know version $version"
[ -s "notes/$version.txt" ] || stop "notes/$version.txt is missing"

rm -rf build && mkdir build
find version.txt package.conf CHANGES.txt notes src -type f | sort > build/MANIFEST.txt
zip -q -X build/release.zip -@ < build/MANIFEST.txt || stop "zip failed"
files=$(wc -l < build/MANIFEST.txt)
bytes=$(xargs -d '\n' cat < build/MANIFEST.txt | wc -c)
echo "Packed $files files, $bytes bytes, in build/release.zip"
