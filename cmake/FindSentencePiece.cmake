# SentencePiece as the targets SentencePiece::sentencepiece and SentencePiece::train, its trainer, which
# needs the former; and SentencePiece_VERSION, from the file for pkg-config beside the library.
find_path(SentencePiece_INCLUDE_DIR sentencepiece_trainer.h)
find_library(SentencePiece_LIBRARY sentencepiece)
find_library(SentencePiece_TRAIN_LIBRARY sentencepiece_train)
mark_as_advanced(SentencePiece_INCLUDE_DIR SentencePiece_LIBRARY SentencePiece_TRAIN_LIBRARY)

set(SentencePiece_VERSION "")
if(SentencePiece_LIBRARY)
  cmake_path(GET SentencePiece_LIBRARY PARENT_PATH SentencePiece_pc)
  cmake_path(APPEND SentencePiece_pc pkgconfig sentencepiece.pc)
  if(EXISTS "${SentencePiece_pc}")
    file(STRINGS "${SentencePiece_pc}" SentencePiece_line REGEX "^Version:" LIMIT_COUNT 1)
    string(REGEX REPLACE "^Version: *" "" SentencePiece_VERSION "${SentencePiece_line}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SentencePiece
  REQUIRED_VARS SentencePiece_TRAIN_LIBRARY SentencePiece_LIBRARY SentencePiece_INCLUDE_DIR
                SentencePiece_VERSION
  VERSION_VAR SentencePiece_VERSION)
if(SentencePiece_FOUND AND NOT TARGET SentencePiece::sentencepiece)
  add_library(SentencePiece::sentencepiece UNKNOWN IMPORTED GLOBAL)
  set_target_properties(SentencePiece::sentencepiece PROPERTIES
    IMPORTED_LOCATION "${SentencePiece_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SentencePiece_INCLUDE_DIR}")
  add_library(SentencePiece::train UNKNOWN IMPORTED GLOBAL)
  set_target_properties(SentencePiece::train PROPERTIES
    IMPORTED_LOCATION "${SentencePiece_TRAIN_LIBRARY}"
    INTERFACE_LINK_LIBRARIES SentencePiece::sentencepiece)
endif()
