# Which source and which flags a binary was built from. Two uses of this one file:
#   include(base/build_info.cmake), after obelisk_add_layer(framework): a target that asks git at every build
#   cmake -D ... -P build_info.cmake: what that target runs
# configure_file leaves an unchanged header alone, so a build without news compiles and links nothing.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(stamp ${PROJECT_BINARY_DIR}/generated/framework/base/build_stamp.h)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" flags)
  add_custom_target(obelisk_build_stamp
    COMMAND ${CMAKE_COMMAND}
            -D "SOURCE=${PROJECT_SOURCE_DIR}"
            -D "TEMPLATE=${CMAKE_CURRENT_LIST_DIR}/build_info.h.in"
            -D "STAMP=${stamp}"
            -D "VERSION=${PROJECT_VERSION}"
            -D "BUILD_TYPE=$<CONFIG>"
            -D "FLAGS=${flags} $<JOIN:$<TARGET_PROPERTY:obelisk_flags,INTERFACE_COMPILE_OPTIONS>, >"
            -P ${CMAKE_CURRENT_LIST_DIR}/build_info.cmake
    BYPRODUCTS ${stamp}
    COMMENT "Reading the commit for build_info"
    VERBATIM)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/build_info.cpp PROPERTIES
    COMPILE_DEFINITIONS OBELISK_BUILD_STAMP
    OBJECT_DEPENDS ${stamp})
  add_dependencies(obelisk_framework obelisk_build_stamp)
  return()
endif()

if(BUILD_TYPE STREQUAL "")
  set(BUILD_TYPE none)
endif()
set(COMMIT unknown)
set(MODIFIED 0)
set(ENV{GIT_OPTIONAL_LOCKS} 0)
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-toplevel
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH "${SOURCE}" source)
  # A tarball unpacked inside somebody else's repository must not claim that repository's commit.
  if(top STREQUAL source)
    execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --verify --short=12 HEAD RESULT_VARIABLE failed
                    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
      set(COMMIT ${head})
      execute_process(COMMAND ${git} -C ${SOURCE} status --porcelain OUTPUT_VARIABLE changes ERROR_QUIET)
      if(changes)
        set(MODIFIED 1)
      endif()
    endif()
  endif()
endif()
string(REGEX REPLACE " +" " " FLAGS "${FLAGS}")
string(STRIP "${FLAGS}" FLAGS)
configure_file(${TEMPLATE} ${STAMP} @ONLY)
