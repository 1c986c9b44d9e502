#!/bin/sh
# link_archives.sh LINKER ARGUMENT...: links with the archives of Abseil and yaml-cpp in place of their shared libraries.
# Of Abseil all or none: a program with some of both would have two of what Abseil has once.
set -eu

archive_of() {
  name=${1##*/}
  echo "${1%/*}/${name%%.so*}.a"
}

abseil=yes
for word; do
  case $word in
    */libabsl_*.so | */libabsl_*.so.*) [ -e "$(archive_of "$word")" ] || abseil=no ;;
  esac
done

left=$#
for word; do
  case $word in
    */libabsl_*.so | */libabsl_*.so.*) [ $abseil = no ] || word=$(archive_of "$word") ;;
    */libyaml-cpp.so | */libyaml-cpp.so.*) [ ! -e "$(archive_of "$word")" ] || word=$(archive_of "$word") ;;
  esac
  set -- "$@" "$word"
done
shift "$left"
exec "$@"
