# SentencePiece where NUMSIM_SENTENCEPIECE asks for it: sets NUMSIM_HAVE_SENTENCEPIECE, and with it the
# target SentencePiece::train.
set(NUMSIM_HAVE_SENTENCEPIECE OFF)
if(NOT NUMSIM_SENTENCEPIECE STREQUAL "OFF")
  find_package(SentencePiece QUIET)
  if(SentencePiece_FOUND)
    set(NUMSIM_HAVE_SENTENCEPIECE ON)
  elseif(NUMSIM_SENTENCEPIECE STREQUAL "ON")
    message(FATAL_ERROR "NUMSIM_SENTENCEPIECE is ON and SentencePiece with its trainer was not found: "
                        "sudo apt-get install libsentencepiece-dev")
  endif()
endif()
