# To find, map and bind forty shared libraries is a good part of what a short call like `matins exec` takes. The
# program has Abseil, yaml-cpp and what C++ brings inside, where their archives are installed; the library `libmatins`,
# which Debian's archives are not made for, and all tests link what is shared. A client library of a database is loaded
# when its store is opened, and SQLite and hiredis stay shared, so that their updates reach the program.
option(MATINS_ARCHIVES "Link the program with the archives of its C++ libraries where they are installed" ON)
if(MATINS_ARCHIVES AND NOT MATINS_SANITIZE)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -static-libstdc++ MATINS_HAS_LIBSTDCXX_ARCHIVE)
endif()

function(matins_link_archives target)
  if(NOT MATINS_ARCHIVES OR MATINS_SANITIZE)
    return()
  endif()
  set(script ${CMAKE_SOURCE_DIR}/cmake/link_archives.sh)
  set_target_properties(${target} PROPERTIES RULE_LAUNCH_LINK ${script} LINK_DEPENDS ${script})
  if(MATINS_HAS_LIBSTDCXX_ARCHIVE)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
