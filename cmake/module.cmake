# matins_module(NAME [SOURCES ...] [DEPS ...] [TESTS ...] [TEST_DEPS ...])
#
# One static library matins_NAME a module, with its exact dependencies, so that an include that runs
# upwards does not link. TESTS are the unit tests beside the sources; they become one ctest program,
# NAME_test.
function(matins_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;TESTS;TEST_DEPS" ${ARGN})
  add_library(matins_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(matins_${name} PUBLIC matins_options ${ARG_DEPS})
  if(MATINS_TESTS AND ARG_TESTS)
    matins_test(${name}_test SOURCES ${ARG_TESTS} DEPS matins_${name} ${ARG_TEST_DEPS})
  endif()
endfunction()

# matins_test(NAME SOURCES ... DEPS ... [LABELS ...]): one GoogleTest program. No test has a time-out of
# its own: ctest's, 25 minutes, ends what hangs, and a busy machine or a sanitizer fails nothing.
function(matins_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE matins_options ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
endfunction()

# matins_closure(TARGET VARIABLE): every target of ours that TARGET links, directly or by others, as a list.
function(matins_closure target variable)
  set(found "")
  set(open ${target})
  while(open)
    list(POP_FRONT open next)
    if(NOT TARGET ${next})
      continue()
    endif()
    get_target_property(libraries ${next} LINK_LIBRARIES)
    foreach(library IN LISTS libraries)
      if(library MATCHES "^matins_" AND NOT library IN_LIST found)
        list(APPEND found ${library})
        list(APPEND open ${library})
      endif()
    endforeach()
  endwhile()
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()

# matins_needs_postgres(TEST): TEST runs while ctest's PostgreSQL does (tests/support/postgres_server.h).
set(MATINS_TEST_POSTGRES ${CMAKE_BINARY_DIR}/postgres.port)
function(matins_needs_postgres test)
  target_link_libraries(${test} PRIVATE matins_test_support)
  add_dependencies(${test} server_fixture)
  set_property(TEST ${test} APPEND PROPERTY FIXTURES_REQUIRED postgres)
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT MATINS_TEST_POSTGRES=${MATINS_TEST_POSTGRES})
endfunction()

# matins_needs_mariadb(TEST): the same with ctest's MariaDB (tests/support/mariadb_server.h).
set(MATINS_TEST_MARIADB ${CMAKE_BINARY_DIR}/mariadb.port)
function(matins_needs_mariadb test)
  target_link_libraries(${test} PRIVATE matins_test_support)
  add_dependencies(${test} server_fixture)
  set_property(TEST ${test} APPEND PROPERTY FIXTURES_REQUIRED mariadb)
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT MATINS_TEST_MARIADB=${MATINS_TEST_MARIADB})
endfunction()

# What `./dev fuzz` and `./dev bench` build, and nothing else with it.
function(matins_program name)
  if(NOT TARGET programs)
    add_custom_target(programs)
  endif()
  add_dependencies(programs ${name})
endfunction()

# matins_fuzz(NAME SOURCES ... DEPS ...): one fuzz target. Under the fuzz preset it is a libFuzzer
# program that `./dev fuzz` runs, with what lies in fuzz/corpus/NAME to begin with; in every build
# with tests that corpus is run through it once, so that what was found stays found.
function(matins_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(MATINS_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/programs)
    matins_program(${name})
  else()
    add_executable(${name} ${ARG_SOURCES} ${CMAKE_SOURCE_DIR}/fuzz/replay.cc)
    add_test(NAME ${name} COMMAND ${name} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
  endif()
  target_link_libraries(${name} PRIVATE matins_options ${ARG_DEPS})
endfunction()

# matins_bench(NAME SOURCES ... DEPS ...): one Google Benchmark program; `./dev bench` runs it. Only
# under the bench preset.
function(matins_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE matins_options ${ARG_DEPS} benchmark::benchmark)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/programs)
  matins_program(${name})
endfunction()

# matins_driver(NAME SOURCES ... DEPS ... [FOLDER drivers]): one program of bench/README.md's interface, for
# `./dev bench` to run. Only under the bench preset.
function(matins_driver name)
  cmake_parse_arguments(ARG "" "FOLDER" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER drivers)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE matins_options ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${ARG_FOLDER})
  matins_program(${name})
endfunction()
