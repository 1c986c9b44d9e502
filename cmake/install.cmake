# `cmake --install build/release`: the program, the library, its headers, and what find_package(matins)
# needs. `--component library` leaves the program out.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS matins RUNTIME COMPONENT program)
install(DIRECTORY lab DESTINATION ${CMAKE_INSTALL_DATADIR}/matins COMPONENT program
  PATTERN "*_test.py" EXCLUDE PATTERN __pycache__ EXCLUDE PATTERN CMakeLists.txt EXCLUDE)
install(DIRECTORY tools/checker DESTINATION ${CMAKE_INSTALL_DATADIR}/matins/lab COMPONENT program
  PATTERN "*_test.py" EXCLUDE PATTERN __pycache__ EXCLUDE)
if(MATINS_SANITIZE)
  return()  # nothing of such a build is for others
endif()
set(MATINS_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/matins)
install(TARGETS matins_scheduler EXPORT matins
  LIBRARY COMPONENT library NAMELINK_COMPONENT library)
install(DIRECTORY include/matins TYPE INCLUDE COMPONENT library FILES_MATCHING PATTERN "*.h")
install(EXPORT matins NAMESPACE matins:: FILE matins-targets.cmake
  DESTINATION ${MATINS_CONFIG_DIR} COMPONENT library)
configure_package_config_file(cmake/matins-config.cmake.in
  ${CMAKE_BINARY_DIR}/matins-config.cmake INSTALL_DESTINATION ${MATINS_CONFIG_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/matins-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/matins-config.cmake ${CMAKE_BINARY_DIR}/matins-config-version.cmake
  DESTINATION ${MATINS_CONFIG_DIR} COMPONENT library)
