// For tests with tokenizers: a cache of the test's own.
#pragma once

#include <cstdlib>
#include <string>

#include "numsim/data/internal/generate_text.h"
#include "numsim/data/tokenizer.h"
#include "tests/support/io_fixture.h"

namespace numsim {

class TokenizerTest : public IoTest {
 protected:
  void SetUp() override {
    if (TokenizerLibrary().empty()) GTEST_SKIP() << "this build has no SentencePiece";
    IoTest::SetUp();
    ::setenv("NUMSIM_CACHE_DIR", Cache().c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("NUMSIM_CACHE_DIR");
    if (!TokenizerLibrary().empty()) IoTest::TearDown();
  }
  std::filesystem::path Cache() const { return Path("cache"); }
};

inline std::string SomeText(size_t bytes, uint64_t part = 0) {
  return GenerateText(TextModel(5), 5, part, bytes).text;
}

}  // namespace numsim
