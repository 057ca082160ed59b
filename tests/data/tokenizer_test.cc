// Tokenizers: nothing is lost, and the pieces are those of byte pair encoding by hand.
#include <map>
#include <set>

#include "numsim/base/parallel.h"
#include "numsim/data/internal/text_words.h"
#include "tests/data/tokenizer_fixture.h"

namespace numsim {
namespace {

std::string Utf8(uint32_t point) {
  std::string bytes;
  const auto add = [&](uint32_t byte) { bytes += static_cast<char>(byte); };
  if (point < 0x80) {
    add(point);
  } else if (point < 0x800) {
    add(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    add(0xE0 | point >> 12);
    add(0x80 | (point >> 6 & 0x3F));
  } else {
    add(0xF0 | point >> 18);
    add(0x80 | (point >> 12 & 0x3F));
    add(0x80 | (point >> 6 & 0x3F));
  }
  if (point >= 0x80) add(0x80 | (point & 0x3F));
  return bytes;
}

// Texts in which something is special to SentencePiece or to the cut into words.
std::vector<std::string> SpecialTexts() {
  return {"",
          " ",
          "   ",
          "a\tb\t\tc",
          "trailing   ",
          "  leading, then  two",
          "CRLF\r\nand\r\n\r\nLF\n\n\nand CR\ralone\n",
          std::string("NUL\0 and \0\0", 11),
          "\xE2\x96\x81low\xE2\x96\x81line \xE2\x96\x81 \xE2\x96\x85 lower",
          "<unk> <0x41> <0xFF> <s></s>",
          "\xEF\xBB\xBFmark \xEF\xBF\xBD \xEF\xBF\xBE",
          "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 family",
          "e\xCC\x81 is not \xC3\xA9; \xC2\xA0 is no space; \xEF\xBC\xA1 is wide",
          "1234567890 3.14 2^10",
          std::string(5000, 'a') + std::string(3000, ' ') + std::string(2000, '\n'),
          "\xE6\x96\x87\xE5\xAD\x97\xE5\x88\x97"};
}

using Tokenizers = TokenizerTest;

TEST_F(Tokenizers, EveryTextComesBack) {
  const Tokenizer tokenizer = Tokenizer::Train(SomeText(50000), 600);
  for (const std::string& text : SpecialTexts()) {
    EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(text)), text) << text;
  }
  std::string every;
  for (uint32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    // All neighbours of the characters of two bytes; one word of a few characters beyond.
    every += Utf8(point) + (point < 0x800 || point % 8 == 0 ? " x" : "");
  }
  EXPECT_TRUE(tokenizer.Decode(tokenizer.Encode(every)) == every);
}

TEST_F(Tokenizers, EveryTextComesBackThroughATokenizerThatIsTrainedOnIt) {
  std::string text;
  for (const std::string& one : SpecialTexts()) text += one + "\n";
  for (uint32_t point = 0; point < 0x800; ++point) text += Utf8(point);
  const Tokenizer tokenizer = Tokenizer::Train(text + text, 2400);
  EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(text)), text);
}

// The definition of byte pair encoding, for a whole text without a cut into words: of all neighbours
// that together are a piece, the one of the lowest number is joined, the leftmost first.
std::vector<std::string> ByHand(const Tokenizer& tokenizer, const std::string& text) {
  std::map<std::string, size_t> pieces;
  for (size_t token = 257; token < tokenizer.Size(); ++token) pieces[tokenizer.Text(token)] = token;
  std::vector<std::string> symbols;
  for (const char byte : text) {
    const bool begins = (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
    if (begins) symbols.emplace_back();
    symbols.back() += byte;
  }
  for (;;) {
    size_t best = tokenizer.Size(), at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = pieces.find(symbols[i] + symbols[i + 1]);
      if (found == pieces.end() || found->second >= best) continue;
      best = found->second;
      at = i;
    }
    if (best == tokenizer.Size()) break;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
  std::vector<std::string> result;
  for (const std::string& symbol : symbols) {
    if (pieces.contains(symbol)) {
      result.push_back(symbol);
    } else {
      for (const char byte : symbol) result.emplace_back(1, byte);
    }
  }
  return result;
}

TEST_F(Tokenizers, FindThePiecesOfBytePairEncodingByHand) {
  const std::string train = SomeText(60000) + "\n\n  indented\n    more\r\n1999, (1999)\n";
  const Tokenizer tokenizer = Tokenizer::Train(train, 900);
  const std::string text = SomeText(1500, 1) +
                           "\n\n\nunseen words,  two spaces\tand\ta tab\r\n    4 spaces "
                           "\xC3\xA4\xE2\x82\xAC 1999. (1999)\n";
  std::vector<std::string> found;
  for (const uint16_t token : tokenizer.Encode(text)) found.push_back(tokenizer.Text(token));
  EXPECT_EQ(found, ByHand(tokenizer, text));
  EXPECT_LT(found.size(), text.size() / 2);
}

// The first pieces: the most frequent neighbours; of several, those of the fewest characters, then the
// first in the order of their bytes. Words are what stands between blanks, with the space before.
TEST_F(Tokenizers, LearnTheMostFrequentNeighbours) {
  const std::string text = "the cat sat on the mat the cat ate a tart at a cart\n";
  const size_t characters = std::set<char>(text.begin(), text.end()).size();
  const Tokenizer tokenizer = Tokenizer::Train(text, 257 + 8 + characters);
  std::vector<std::vector<std::string>> words(1);
  for (const char c : text) {
    if (c == ' ') words.emplace_back();
    words.back().emplace_back(1, c);
  }
  for (size_t piece = 257; piece < 257 + 8; ++piece) {
    std::map<std::string, int> counts;
    for (const auto& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i + 1] != "\n") ++counts[word[i] + word[i + 1]];
      }
    }
    const auto before = [](const auto& a, const auto& b) {
      // A space is U+2581 to the library, behind all letters.
      const auto key = [](std::string s) { return s[0] == ' ' ? "\xE2\x96\x81" + s.substr(1) : s; };
      return std::tuple(-a.second, a.first.size(), key(a.first)) <
             std::tuple(-b.second, b.first.size(), key(b.first));
    };
    const std::string best = std::min_element(counts.begin(), counts.end(), before)->first;
    ASSERT_EQ(tokenizer.Text(piece), best) << piece;
    for (auto& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i] + word[i + 1] != best) continue;
        word[i] = best;
        word.erase(word.begin() + static_cast<ptrdiff_t>(i) + 1);
      }
    }
  }
}

TEST_F(Tokenizers, AreTheSameAtEveryThreadCount) {
  const int threads = ThreadCount();
  const std::string text = SomeText(100000);
  std::set<std::string> models;
  std::set<std::vector<uint16_t>> tokens;
  for (const int count : {1, 2, 5}) {
    SetThreadCount(count);
    const Tokenizer tokenizer = Tokenizer::Train(text, 1000);
    models.insert(tokenizer.Model());
    tokens.insert(tokenizer.Encode(text));
  }
  SetThreadCount(threads);
  EXPECT_EQ(models.size(), 1u);
  EXPECT_EQ(tokens.size(), 1u);
}

TEST_F(Tokenizers, WordsAreCutWhereNoPieceCrosses) {
  const auto words = [](std::string_view text) {
    std::vector<std::string> result;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = WordEnd(text, begin);
      result.emplace_back(text.substr(begin, end - begin));
      begin = end;
    }
    return result;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(words("a bc  d \n\n e\r\n\r\nf"),
            (Texts{"a", " bc", "  d", " \n\n", " e\r\n", "\r\n", "f"}));
  EXPECT_EQ(words("a\tb\xE2\x96\x81 c\xE2\x96\x85"),
            (Texts{"a", "\t", "b", "\xE2\x96\x81", " c", "\xE2\x96\x85"}));
  EXPECT_EQ(words(std::string("\0\0", 2)).size(), 2u);
  const Texts cut = words(std::string(kMostWord - 1, 'a') + "\xC3\xA4" + "b");
  ASSERT_EQ(cut.size(), 2u);  // after the character that passes the limit
  EXPECT_EQ(cut[1], "b");
  const TextWords found = FindWords("a b a b b");
  EXPECT_EQ(found.words, (std::vector<std::string_view>{"a", " b", " a"}));
  EXPECT_EQ(found.counts, (std::vector<uint64_t>{1, 3, 1}));
  EXPECT_EQ(found.sequence, (std::vector<uint32_t>{0, 1, 2, 1, 1}));
}

TEST_F(Tokenizers, NameTheSizesThatATextAllows) {
  const auto message = [](std::string_view text, size_t vocabulary) {
    return ErrorOf([&] { Tokenizer::Train(text, vocabulary); });
  };
  const std::string text = SomeText(2000);
  EXPECT_EQ(message(text, 257), "data.vocabulary: 257, expected 258 .. 65536 for a tokenizer");
  EXPECT_EQ(message(text, 65537), "data.vocabulary: 65537, expected 258 .. 65536 for a tokenizer");
  const auto last_number = [](const std::string& line, std::string_view after) {
    return std::stoul(line.substr(line.find(after) + after.size()));
  };
  const std::string large = message(text, 32768);
  ExpectMessage(large, {"data.vocabulary: 32768, but a text of 2000 bytes"});
  const size_t most = last_number(large, "no more than ");
  EXPECT_EQ(message(text, most), kNoError);
  EXPECT_EQ(last_number(message(text, most + 1), "no more than "), most);
  const std::string small = message(text, 260);
  ExpectMessage(small, {"data.vocabulary: 260, but the bytes and the characters"});
  const size_t least = last_number(small, "text need ");
  EXPECT_EQ(message(text, least), kNoError);
  EXPECT_EQ(last_number(message(text, least - 1), "text need "), least);
  ExpectMessage(message("", 300), {"no words"});
  ExpectMessage(message("\t\t", 300), {"no words"});
}

TEST_F(Tokenizers, AFileIsReadBackOrRefused) {
  const Tokenizer tokenizer = Tokenizer::Train(SomeText(20000), 400);
  const std::string model = tokenizer.Model();
  EXPECT_EQ(Tokenizer::Read(Put("t.model", model)).Digest(), tokenizer.Digest());
  const auto message = [&](std::string_view bytes) {
    return ErrorOf([&] { Tokenizer::Read(Put("bad.model", bytes)); });
  };
  ExpectMessage(ErrorOf([&] { Tokenizer::Read(Path("absent")); }), {Path("absent").string()});
  for (const std::string& bytes : {std::string(), std::string("text"), std::string(100, '\xFF')}) {
    ExpectMessage(message(bytes), {Path("bad.model").string()});
  }
  for (size_t size = 1; size < model.size();
       size += 97) {  // each cut is refused or seen by its size
    const std::string said = message(model.substr(0, size));
    if (said != kNoError) ExpectMessage(said, {Path("bad.model").string()});
    EXPECT_TRUE(said != kNoError ||
                Tokenizer::Read(Path("bad.model")).Digest() != tokenizer.Digest());
  }
}

// add_dummy_prefix, in the settings of normalisation at the end of the model.
TEST_F(Tokenizers, AFileThatChangesTextsIsRefused) {
  std::string model = Tokenizer::Train(SomeText(20000), 400).Model();
  const size_t name = model.rfind("identity");
  ASSERT_NE(name, std::string::npos);
  const size_t prefix = model.find(std::string("\x18\0", 2), name);
  ASSERT_NE(prefix, std::string::npos);
  model[prefix + 1] = '\1';
  const Tokenizer other = Tokenizer::Read(Put("prefix.model", model));
  ExpectMessage(ErrorOf([&] { other.Encode("word"); }),
                {Path("prefix.model").string(), "changes 'word' into ' word'"});
}

TEST_F(Tokenizers, DecodeChecksItsTokens) {
  const Tokenizer tokenizer = Tokenizer::Train(SomeText(20000), 400);
  const std::vector<uint16_t> tokens = {399, 400};
  EXPECT_EQ(ErrorOf([&] { tokenizer.Decode(tokens); }), "token 400, expected less than 400");
}

}  // namespace
}  // namespace numsim
