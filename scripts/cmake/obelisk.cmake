# Compiler flags and the three ways to add something: a layer, a protobuf schema, a folder of tests.

add_library(obelisk_flags INTERFACE)
# No contraction: a*b+c is rounded twice unless the code says fma, so results do not depend on the optimiser.
target_compile_options(obelisk_flags INTERFACE -Wall -Wextra -Werror -ffp-contract=off -fno-math-errno
                                               $<$<CONFIG:RelWithDebInfo>:-g1>)
target_include_directories(obelisk_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
# Three targets of Highway keep compile time in bounds: one lane (runs on any x86-64), AVX2 and AVX-512.
target_compile_definitions(obelisk_flags INTERFACE
  "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL)")
if(OBELISK_SANITIZE)
  target_compile_options(obelisk_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                                                 -fno-omit-frame-pointer)
  target_link_options(obelisk_flags INTERFACE -fsanitize=address,undefined)
endif()

# obelisk_add_layer(NAME [DEPENDS libraries...])
# One static library from every .cpp below the current folder; the schemas below it come as NAME's .proto files.
function(obelisk_add_layer name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/trainer/main\\.cpp$")
  add_library(obelisk_${name} STATIC ${sources})
  target_link_libraries(obelisk_${name} PUBLIC obelisk_flags ${arg_DEPENDS})
  obelisk_add_schemas(obelisk_${name})
endfunction()

# Compiles every .proto below the current folder into the target. Import paths are from the repository root.
function(obelisk_add_schemas target)
  file(GLOB_RECURSE protos CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.proto)
  # An imported schema may change what is generated, options.proto above all.
  file(GLOB_RECURSE all_protos CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/framework/*.proto
       ${PROJECT_SOURCE_DIR}/parallel/*.proto ${PROJECT_SOURCE_DIR}/recipes/*.proto)
  set(out ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  foreach(proto ${protos})
    file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${proto})
    string(REGEX REPLACE "\\.proto$" "" stem ${relative})
    add_custom_command(
      OUTPUT ${out}/${stem}.pb.cc ${out}/${stem}.pb.h
      COMMAND ${Protobuf_PROTOC_EXECUTABLE} -I ${PROJECT_SOURCE_DIR} --cpp_out=${out} ${relative}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      DEPENDS ${proto} ${all_protos}
      VERBATIM)
    target_sources(${target} PRIVATE ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
    set_source_files_properties(${out}/${stem}.pb.cc PROPERTIES COMPILE_OPTIONS "-w")
  endforeach()
  if(protos)
    target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
  endif()
endfunction()

# obelisk_add_tests(NAME LABEL label [RANKS n] [TIMEOUT s] [DEPENDS libraries...] [ARGS ...])
# One executable from every *_test.cpp of the current folder, and one ctest entry a file: its suites are read from the
# source, so a new file is picked up by itself and a file without tests is an error. With RANKS the entry runs under mpirun.
function(obelisk_add_tests name)
  cmake_parse_arguments(arg "" "LABEL;RANKS;TIMEOUT" "DEPENDS;ARGS;SOURCES" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE obelisk_test_main ${arg_DEPENDS})
  obelisk_register_tests(${name} LABEL ${arg_LABEL} RANKS ${arg_RANKS} TIMEOUT ${arg_TIMEOUT} ARGS ${arg_ARGS})
endfunction()

# The ctest entries of an executable built by obelisk_add_tests; SUFFIX registers the same tests once more under other ARGS.
function(obelisk_register_tests name)
  cmake_parse_arguments(arg "" "LABEL;RANKS;TIMEOUT;SUFFIX" "ARGS" ${ARGN})
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  foreach(test ${tests})
    file(STRINGS ${test} lines REGEX "^(TEST|TEST_F|TEST_P|TYPED_TEST)\\(")
    set(filter "")
    foreach(line ${lines})
      string(REGEX REPLACE "^[A-Z_]+\\(([A-Za-z0-9_]+).*" "\\1" suite "${line}")
      list(APPEND filter "${suite}.*" "*/${suite}.*" "${suite}/*")
    endforeach()
    if(NOT filter)
      message(FATAL_ERROR "${test} holds no TEST")
    endif()
    list(REMOVE_DUPLICATES filter)
    list(JOIN filter ":" filter)
    get_filename_component(stem ${test} NAME_WE)
    set(entry ${name}.${stem}${arg_SUFFIX})
    set(command $<TARGET_FILE:${name}> "--gtest_filter=${filter}" ${arg_ARGS})
    if(arg_RANKS)
      set(entry ${entry}.x${arg_RANKS})
      set(command ${MPIEXEC_EXECUTABLE} -n ${arg_RANKS} --oversubscribe --bind-to none ${command})
    endif()
    add_test(NAME ${entry} COMMAND ${command} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${entry} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} ENVIRONMENT
      "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMP_WAIT_POLICY=passive;LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp;UBSAN_OPTIONS=print_stacktrace=1")
    if(arg_RANKS)
      set_tests_properties(${entry} PROPERTIES PROCESSORS ${arg_RANKS})
    endif()
  endforeach()
endfunction()
