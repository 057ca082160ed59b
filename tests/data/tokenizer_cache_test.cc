// The cache of tokenizers, and texts that are read through them.
#include <thread>

#include "numsim/data/source.h"
#include "numsim/io/manifest.h"
#include "tests/data/tokenizer_fixture.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;

class TokenizerCache : public TokenizerTest {
 protected:
  // The only entry.
  fs::path Entry() const {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(Cache() / "tokenizers")) files.push_back(file);
    EXPECT_EQ(files.size(), 1u);
    return files.at(0);
  }
};

const std::string& Text() {
  static const std::string text = SomeText(20000);
  return text;
}

TEST_F(TokenizerCache, HasTheBytesOfTheTraining) {
  const Tokenizer trained = Tokenizer::Train(Text(), 400);
  EXPECT_FALSE(fs::exists(Cache()));
  const Tokenizer first = Tokenizer::TrainOrRecall(Text(), 400);
  const auto written = fs::last_write_time(Entry());
  const Tokenizer second = Tokenizer::TrainOrRecall(Text(), 400);
  EXPECT_EQ(fs::last_write_time(Entry()), written);
  for (const Tokenizer* one : {&first, &second}) {
    EXPECT_EQ(one->Model(), trained.Model());
    EXPECT_EQ(one->Digest(), trained.Digest());
    EXPECT_EQ(one->Encode(Text()), trained.Encode(Text()));
  }
}

// An entry with the right digests is believed, which shows that it is read at all.
TEST_F(TokenizerCache, IsReadInPlaceOfATraining) {
  Tokenizer::TrainOrRecall(Text(), 400);
  const std::string key = Entry().filename().string();
  const Tokenizer other = Tokenizer::Train(SomeText(20000, 1), 400);
  Put("cache/tokenizers/" + key,
      fmt::format("numsim tokenizer\n{}\n{}\n{}", key, other.Digest(), other.Model()));
  EXPECT_EQ(Tokenizer::TrainOrRecall(Text(), 400).Digest(), other.Digest());
}

TEST_F(TokenizerCache, ReplacesWhatIsDamaged) {
  const Tokenizer trained = Tokenizer::TrainOrRecall(Text(), 400);
  const fs::path entry = Entry();
  const std::string good = Bytes(entry);
  std::vector<std::string> damaged = {"",
                                      "numsim tokenizer\n",
                                      good.substr(0, good.size() - 1),
                                      good + "x",
                                      good.substr(0, good.size() / 2)};
  for (size_t at = 0; at < good.size(); at += at < 160 ? 7 : 997) {
    damaged.push_back(good);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 1);
  }
  // A good entry of another size, under the name of this one.
  const std::string model = Tokenizer::Train(Text(), 500).Model();
  damaged.push_back(fmt::format(
      "numsim tokenizer\n{}\n{}\n{}", entry.filename().string(), Sha256OfText(model), model));
  for (const std::string& bytes : damaged) {
    std::ofstream(entry, std::ios::binary) << bytes;
    EXPECT_EQ(Tokenizer::TrainOrRecall(Text(), 400).Digest(), trained.Digest());
    EXPECT_TRUE(Bytes(entry) == good);
  }
}

TEST_F(TokenizerCache, HasAnEntryForEachTextAndSize) {
  Tokenizer::TrainOrRecall(Text(), 400);
  Tokenizer::TrainOrRecall(Text(), 401);
  const Tokenizer other = Tokenizer::TrainOrRecall(SomeText(20000, 1), 400);
  EXPECT_EQ(other.Digest(), Tokenizer::Train(SomeText(20000, 1), 400).Digest());
  size_t entries = 0;
  for (const auto& file : fs::directory_iterator(Cache() / "tokenizers")) {
    entries += file.is_regular_file();
  }
  EXPECT_EQ(entries, 3u);  // no temporary file and no lock either
}

TEST_F(TokenizerCache, ServesSeveralAtOnce) {
  std::vector<std::string> digests(4);
  std::vector<std::thread> threads;
  for (std::string& digest : digests) {
    threads.emplace_back([&] { digest = Tokenizer::TrainOrRecall(Text(), 400).Digest(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& digest : digests) EXPECT_EQ(digest, digests[0]);
  EXPECT_EQ(Tokenizer::Train(Text(), 400).Digest(), digests[0]);
  Entry();
}

TEST_F(TokenizerCache, IsNotNeeded) {
  Put("cache", "a file in its place");
  const Tokenizer trained = Tokenizer::Train(Text(), 400);
  EXPECT_EQ(Tokenizer::TrainOrRecall(Text(), 400).Digest(), trained.Digest());
  EXPECT_EQ(Bytes(Cache()), "a file in its place");
}

TEST_F(TokenizerCache, LiesWhereTheEnvironmentSays) {
  const auto saved = [](const char* name) {
    return std::string(std::getenv(name) ? std::getenv(name) : "");
  };
  const std::string home = saved("HOME"), xdg = saved("XDG_CACHE_HOME");
  EXPECT_EQ(CacheFolder(), Cache());
  ::unsetenv("NUMSIM_CACHE_DIR");
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  ::setenv("HOME", "/h", 1);
  EXPECT_EQ(CacheFolder(), "/x/numsim");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(CacheFolder(), "/h/.cache/numsim");
  ::unsetenv("HOME");
  EXPECT_EQ(CacheFolder(), "");
  ::unsetenv("XDG_CACHE_HOME");
  if (!home.empty()) ::setenv("HOME", home.c_str(), 1);
  if (!xdg.empty()) ::setenv("XDG_CACHE_HOME", xdg.c_str(), 1);
}

using TextOfPieces = TokenizerTest;

DataConfig PieceConfig(const fs::path& path, size_t vocabulary) {
  DataConfig config;
  config.kind = DataKind::kText;
  config.path = path;
  config.tokenizer = TokenizerKind::kBpe;
  config.vocabulary = vocabulary;
  return config;
}

TEST_F(TextOfPieces, HasTheTokensOfTheText) {
  const std::string text = SomeText(30000);
  DataConfig config = PieceConfig(Put("a.txt", text), 500);
  const auto source = OpenData(config);
  config.tokenizer = TokenizerKind::kBytes;
  const size_t cut = OpenData(config)->shape().train_examples;
  const Tokenizer tokenizer = Tokenizer::Train(text.substr(0, cut), 500);
  const std::vector<uint16_t> valid = tokenizer.Encode(text.substr(cut));
  EXPECT_EQ(source->shape().vocabulary, 500u);
  EXPECT_EQ(source->shape().unit, "tokens");
  EXPECT_EQ(source->shape().train_examples, tokenizer.Encode(text.substr(0, cut)).size());
  ASSERT_EQ(source->shape().valid_examples, valid.size());
  Batch batch;
  source->ValidBatch(0, 1, valid.size() - 1, batch);
  EXPECT_EQ(batch.tokens, std::vector<int32_t>(valid.begin(), valid.end() - 1));
  EXPECT_EQ(batch.targets, std::vector<int32_t>(valid.begin() + 1, valid.end()));
  EXPECT_EQ(source->EntropyBound(), std::nullopt);
  size_t bytes = 0;
  for (const uint16_t token : valid) bytes += source->TokenBytes()[token];
  EXPECT_EQ(bytes, text.size() - cut);
  const auto digests = source->Digests();
  ASSERT_EQ(digests.size(), 2u);
  EXPECT_EQ(digests[0], (std::pair<std::string, std::string>("tokenizer", tokenizer.Digest())));
  EXPECT_EQ(digests[1], (std::pair<std::string, std::string>("text", Sha256OfText(text))));
  ExpectMessage(source->Describe(),
                {"tokens of a.txt", "bytes per token", tokenizer.Digest(), Sha256OfText(text)});
  // Bytes are as ever.
  EXPECT_TRUE(OpenData(config)->TokenBytes().empty() && OpenData(config)->Digests().empty());
}

TEST_F(TextOfPieces, LearnsNothingFromTheTextForValidation) {
  DataConfig config = PieceConfig(Put("a.txt", SomeText(20000)), 400);
  config.valid_path = Put("b.txt", SomeText(5000, 1));
  const auto first = OpenData(config)->Digests();
  config.valid_path = Put("c.txt", "something else entirely, \xF0\x9F\x98\x80!");
  const auto second = OpenData(config)->Digests();
  EXPECT_EQ(first[0], second[0]);
  EXPECT_NE(first[1], second[1]);
  EXPECT_EQ(first[0].second, Tokenizer::Train(SomeText(20000), 400).Digest());
}

TEST_F(TextOfPieces, TheBoundOfGeneratedTextIsThatOfItsBytes) {
  DataConfig config;
  config.size = 40000;
  const double bytes = *OpenData(config)->EntropyBound() * 4000;
  config.tokenizer = TokenizerKind::kBpe;
  config.vocabulary = 500;
  const auto source = OpenData(config);
  EXPECT_NEAR(*source->EntropyBound() * static_cast<double>(source->shape().valid_examples),
              bytes,
              1e-9 * bytes);
}

TEST_F(TextOfPieces, TakesAGivenTokenizer) {
  const Tokenizer tokenizer = Tokenizer::Train(SomeText(20000, 3), 400);
  DataConfig config = PieceConfig(Put("a.txt", SomeText(20000)), 400);
  config.tokenizer_path = Put("t.model", tokenizer.Model());
  EXPECT_EQ(OpenData(config)->Digests()[0].second, tokenizer.Digest());
  EXPECT_FALSE(fs::exists(Cache()));
  config.vocabulary = 401;
  EXPECT_EQ(ErrorOf([&] { OpenData(config); }),
            fmt::format("data.vocabulary: 401, but {} has 400 entries", Path("t.model").string()));
}

TEST_F(TextOfPieces, NamesTheKeyAtFault) {
  const fs::path path = Put("a.txt", SomeText(5000));
  ExpectMessage(ErrorOf([&] { OpenData(PieceConfig(path, 32768)); }),
                {"data.vocabulary: 32768", "no more than"});
  ExpectMessage(ErrorOf([&] { OpenData(PieceConfig(path, 100)); }), {"data.vocabulary: 100"});
  DataConfig config = PieceConfig(path, 300);
  config.tokenizer_path = Put("t.model", "no tokenizer");
  ExpectMessage(ErrorOf([&] { OpenData(config); }), {Path("t.model").string(), "not a tokenizer"});
  config.tokenizer = TokenizerKind::kBytes;
  ExpectMessage(ErrorOf([&] { OpenData(config); }), {"data.tokenizer_path", "data.tokenizer=bpe"});
  config = {};
  config.kind = DataKind::kZipf;
  config.tokenizer = TokenizerKind::kBpe;
  ExpectMessage(ErrorOf([&] { OpenData(config); }),
                {"data.tokenizer: bpe, but zipf is no text to tokenize; expected bytes"});
  DataConfig one = PieceConfig(path, 400);
  one.valid_path = Put("one.txt", Tokenizer::Train(SomeText(5000), 400).Text(257));
  ExpectMessage(ErrorOf([&] { OpenData(one); }), {"one.txt: 1 token for validation"});
}

// In a build without the library.
TEST(TextOfPiecesAbsent, NamesThePackage) {
  if (!TokenizerLibrary().empty()) GTEST_SKIP() << "this build has SentencePiece";
  DataConfig config;
  config.tokenizer = TokenizerKind::kBpe;
  ExpectMessage(ErrorOf([&] { OpenData(config); }),
                {"data.tokenizer: bpe", "SentencePiece", "libsentencepiece-dev"});
  ExpectMessage(ErrorOf([&] { Tokenizer::Train("a text", 300); }), {"libsentencepiece-dev"});
}

}  // namespace
}  // namespace numsim
