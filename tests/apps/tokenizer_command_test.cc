// `numsim tokenizer`.
#include "numsim/data/tokenizer.h"
#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

class TokenizerCommand : public BadInputTest {
 protected:
  void SetUp() override {
    if (TokenizerLibrary().empty()) GTEST_SKIP() << "this build has no SentencePiece";
    BadInputTest::SetUp();
    std::string text;
    for (int i = 0; i < 400; ++i) text += fmt::format("line {} of a text, {}\r\n\ttab\n", i, i * i);
    Put("text.txt", text);
  }
};

TEST_F(TokenizerCommand, TrainsDescribesAndApplies) {
  const std::string said = Output("tokenizer train text.txt --vocabulary 300 --out t.model");
  const Tokenizer tokenizer = Tokenizer::Train(Bytes(Path("text.txt")), 300);
  EXPECT_EQ(Bytes(Path("t.model")), tokenizer.Model());
  ExpectMessage(said.substr(0, said.find('\n')), {"300 entries", tokenizer.Digest()});
  EXPECT_EQ(Output("tokenizer show t.model text.txt"), said);
  EXPECT_THAT(Output("tokenizer show t.model --pieces"), HasSubstr("\n1 \"\\x00\"\n"));
  Output("tokenizer encode t.model text.txt tokens.npy");
  const Array tokens = GetNpy("tokens.npy");
  ASSERT_EQ(tokens.type, ElementType::kU16);
  const auto* const first = tokens.Data<uint16_t>();
  EXPECT_EQ(std::vector<uint16_t>(first, first + tokens.Elements()),
            tokenizer.Encode(Bytes(Path("text.txt"))));
  Output("tokenizer decode t.model tokens.npy back.txt");
  EXPECT_EQ(Bytes(Path("back.txt")), Bytes(Path("text.txt")));
}

TEST_F(TokenizerCommand, RefusesBadInput) {
  Output("tokenizer train text.txt --vocabulary 300 --out t.model");
  Put("latin.txt", "caf\xE9");
  PutNpy("large.npy", ElementType::kU16, std::vector<uint16_t>{299, 300});
  PutNpy("floats.npy", ElementType::kF32, std::vector<float>{1});
  Expect({
      {{"tokenizer"}, {"COMMAND of tokenizer", "train, show, encode, decode"}},
      {{"tokenizer", "trian"}, {"did you mean train?"}},
      {{"tokenizer", "train", "text.txt"}, {"--out"}},
      {{"tokenizer", "train", "absent", "--out", "o"}, {"absent"}},
      {{"tokenizer", "train", "latin.txt", "--out", "o"}, {"latin.txt", "offset 3"}},
      {{"tokenizer", "train", "text.txt", "--out", "text.txt"}, {"--out"}},
      {{"tokenizer", "train", "text.txt", "--out", "absent/o"}, {"absent/o"}},
      {{"tokenizer", "train", "text.txt", "--vocabulary", "9", "--out", "o"}, {"--vocabulary: 9"}},
      {{"tokenizer", "train", "text.txt", "--out", "o"}, {"--vocabulary: 32768", "no more than"}},
      {{"tokenizer", "show", "text.txt"}, {"text.txt", "not a tokenizer"}},
      {{"tokenizer", "encode", "t.model", "absent", "o.npy"}, {"absent"}},
      {{"tokenizer", "decode", "t.model", "large.npy", "o"}, {"large.npy", "token 300"}},
      {{"tokenizer", "decode", "t.model", "floats.npy", "o"}, {"floats.npy", "expected uint16"}},
  });
}

}  // namespace
}  // namespace numsim::apps
