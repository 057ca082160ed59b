# Writes build_info.cc; run by every build with cmake -P. Rewrites the file only when it changes.
#   -D SOURCE_DIR=   root of the sources      -D INPUT=, OUTPUT=   build_info.cc.in, build_info.cc
#   -D VERSION=, COMPILER=, TYPE=             as the functions of build_info.h return them
# The commit is "unknown" outside a git checkout; it ends in "-dirty" when files that the library or
# the program is built from differ from it.
set(COMMIT unknown)
find_program(GIT_EXECUTABLE git)
if(GIT_EXECUTABLE AND EXISTS "${SOURCE_DIR}/.git")
  set(ENV{GIT_OPTIONAL_LOCKS} 0)
  set(git "${GIT_EXECUTABLE}" -c "safe.directory=${SOURCE_DIR}" -C "${SOURCE_DIR}")
  execute_process(COMMAND ${git} rev-parse --verify HEAD
                  OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE status ERROR_QUIET)
  if(status EQUAL 0)
    set(COMMIT "${head}")
    execute_process(COMMAND ${git} status --porcelain --
                            CMakeLists.txt cmake libnumsim experiments apps
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND COMMIT "-dirty")
    endif()
  endif()
endif()
if(NOT TYPE)
  set(TYPE none)
endif()
configure_file("${INPUT}" "${OUTPUT}" @ONLY)
