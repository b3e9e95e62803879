#!/bin/sh
# Kernel, initramfs and GRUB, once all modules and settings are in place.
set -eu
update-initramfs -c -k all
kernel=$(ls /boot/vmlinuz-* | sort -V | tail -n 1)
version=${kernel#/boot/vmlinuz-}
# Debian keeps these links up to date when a kernel is installed; GRUB's entry names only them.
ln -sfn "boot/vmlinuz-$version" /vmlinuz
ln -sfn "boot/initrd.img-$version" /initrd.img
rm -f /vmlinuz.old /initrd.img.old
mkdir -p /boot/grub
cat > /boot/grub/grub.cfg <<EOF
linux /vmlinuz root=LABEL=cua-root ro $CUA_CMDLINE
initrd /initrd.img
boot
EOF
# GRUB's packages are only unpacked: installed, they would run at every boot and kernel change.
work=$(mktemp -d)
cd "$work"
chmod 777 .
apt-get -qq download grub-pc-bin grub-common
for deb in *.deb; do
    dpkg-deb -x "$deb" .
done
cat > early.cfg <<EOF
search --no-floppy --label cua-root --set=root
set prefix=(\$root)/boot/grub
configfile /boot/grub/grub.cfg
EOF
usr/bin/grub-mkimage -O i386-pc -d usr/lib/grub/i386-pc -p /boot/grub -c early.cfg \
    -o /boot/grub/core.img \
    biosdisk part_msdos ext2 search search_label linux normal configfile
cp usr/lib/grub/i386-pc/boot.img /boot/grub/boot.img
cd /
rm -rf "$work"
