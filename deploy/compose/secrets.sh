#!/bin/sh
# Makes the passwords that deploy/compose.yaml mounts as files, each once: what is there stays as it is.
set -eu
dir="$(cd "$(dirname "$0")" && pwd)/secrets"

# The directory is closed to others; the files in it are open to the users that containers run as.
mkdir -p "$dir"
chmod 0700 "$dir"
umask 022

password() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

# As PostgreSQL's password files are written: host:port:database:user:password.
login() {
  if [ ! -s "$dir/$1" ]; then
    printf 'postgres:5432:holdfast:%s:%s\n' "$2" "$3" >"$dir/$1"
  fi
}

if [ ! -s "$dir/owner_password" ]; then
  password >"$dir/owner_password"
fi
login owner_login holdfast "$(cat "$dir/owner_password")"
login api_login holdfast_api_login "$(password)"
login worker_login holdfast_worker_login "$(password)"
echo "secrets: in $dir; keep them as long as the database's volume"
