#!/bin/sh
# Start the session at boot, and make the account's folders before it does.
set -eu
sed -i "s/^User=.*/User=$CUA_USER/" /etc/systemd/system/cua-desktop.service
# In the server's own configuration: `setxkbmap` in the session would compile the map again, 2 s
# under TCG.
cat > /etc/X11/xorg.conf.d/20-keyboard.conf <<EOF
Section "InputClass"
    Identifier "keyboard layout"
    MatchIsKeyboard "on"
    Option "XkbModel" "pc105"
    Option "XkbLayout" "$CUA_LAYOUT"
EndSection
EOF
systemctl enable --quiet cua-desktop.service
/usr/lib/*/glib-2.0/glib-compile-schemas /usr/share/glib-2.0/schemas
runuser -u "$CUA_USER" -- env LANG=C HOME="$CUA_HOME" xdg-user-dirs-update
# The rest of what starts by itself is nothing a person asked for.
for entry in xfce4-clipman-plugin-autostart xiccd geoclue-demo-agent nm-applet print-applet \
    polkit-gnome-authentication-agent-1 xscreensaver light-locker xfce4-screensaver \
    xfce4-notifyd xfce4-power-manager update-notifier gnome-keyring-pkcs11 \
    gnome-keyring-secrets gnome-keyring-ssh
do
    rm -f "/etc/xdg/autostart/$entry.desktop"
done
