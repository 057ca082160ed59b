// `numsim tokenizer`: trains a tokenizer on a text, describes it, and applies it.
#include <fmt/format.h>

#include <cstring>

#include "apps/command.h"
#include "numsim/base/error.h"
#include "numsim/data/tokenizer.h"
#include "numsim/data/utf8_file.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/npy.h"

namespace numsim::apps {
namespace {

void PrintTokenizer(const Tokenizer& tokenizer) {
  fmt::print(
      "{} entries, {}, SHA-256 {}\n", tokenizer.Size(), TokenizerLibrary(), tokenizer.Digest());
}

void PrintText(const std::string& path, const std::string& text, size_t tokens) {
  fmt::print("{}: {} bytes, {} tokens, {:.4f} bytes per token\n",
             path,
             text.size(),
             tokens,
             static_cast<double>(text.size()) / static_cast<double>(tokens));
}

int TrainTokenizer(const std::string& text_path, size_t vocabulary, const std::string& out) {
  CheckKeepsInputs("--out", out, {text_path});
  AtomicFile file(out);  // found before the work if it cannot be written
  const std::string text = ReadUtf8File(text_path);
  try {
    const Tokenizer tokenizer = Tokenizer::Train(text, vocabulary);
    file.Write(tokenizer.Model());
    PrintTokenizer(tokenizer);
    PrintText(text_path, text, tokenizer.Encode(text).size());
  } catch (const KeyError& error) {
    throw KeyError("--vocabulary", error.text());
  }
  file.Commit();
  return 0;
}

// Prints a piece so that it stands on a line, with the bytes that are no printable ASCII as \xNN.
std::string Quoted(const std::string& piece) {
  std::string text;
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x20 && byte < 0x7F && c != '\\' && c != '"';
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return "\"" + text + "\"";
}

int ShowTokenizer(const std::string& path, const std::string& text_path, bool pieces) {
  const Tokenizer tokenizer = Tokenizer::Read(path);
  const std::string text = text_path.empty() ? "" : ReadUtf8File(text_path);
  PrintTokenizer(tokenizer);
  if (!text.empty()) PrintText(text_path, text, tokenizer.Encode(text).size());
  for (size_t token = 0; pieces && token < tokenizer.Size(); ++token) {
    fmt::print("{} {}\n", token, Quoted(tokenizer.Text(token)));
  }
  return 0;
}

int EncodeText(const std::string& path, const std::string& text_path, const std::string& out) {
  CheckKeepsInputs("OUT", out, {path, text_path});
  const std::string text = ReadUtf8File(text_path);
  const std::vector<uint16_t> tokens = Tokenizer::Read(path).Encode(text);
  Array array{ElementType::kU16, {tokens.size()}, std::vector<std::byte>(2 * tokens.size())};
  std::memcpy(array.bytes.data(), tokens.data(), array.bytes.size());
  WriteNpy(out, array);
  PrintText(text_path, text, tokens.size());
  return 0;
}

int DecodeTokens(const std::string& path, const std::string& tokens, const std::string& out) {
  CheckKeepsInputs("OUT", out, {path, tokens});
  const Array array = ReadNpy(tokens);
  if (array.type != ElementType::kU16 || array.shape.size() != 1) {
    throw Error::Format("{}: {} of shape {}, expected uint16 of one dimension",
                        tokens,
                        ToString(array.type),
                        ShapeToString(array.shape));
  }
  const Tokenizer tokenizer = Tokenizer::Read(path);
  try {
    WriteFileAtomically(out, tokenizer.Decode({array.Data<uint16_t>(), array.Elements()}));
  } catch (const Error& error) {
    throw Error::Format("{}: {}", tokens, error.what());
  }
  return 0;
}

struct TokenizerOptions {
  std::string tokenizer, text, out;
  size_t vocabulary = 32768;
  bool pieces = false;
};

CLI::Option* Required(CLI::App* sub, const char* name, std::string& value, const char* help) {
  return sub->add_option(name, value, help)->required()->check(NotEmpty());
}

}  // namespace

void AddTokenizerCommand(Program& program) {
  CLI::App* group = program.app.add_subcommand(
      "tokenizer", "Train a tokenizer on a text, describe it, and apply it");
  group->fallthrough();
  Example(group, "numsim tokenizer train text.txt --vocabulary 32768 --out text.model");

  auto options = std::make_shared<TokenizerOptions>();
  CLI::App* train = group->add_subcommand("train", "Train a tokenizer on a text in UTF-8");
  Required(train, "TEXT", options->text, "The text");
  train->add_option("--vocabulary", options->vocabulary, "Number of entries, 258 to 65536")
      ->capture_default_str();
  Required(train, "--out", options->out, "Output file, a model of SentencePiece");
  Example(train,
          "numsim tokenizer train text.txt --vocabulary 8000 --out text.model\n"
          "  numsim train --preset tiny --set data.kind=text --set data.path=text.txt --set "
          "data.tokenizer=bpe \\\n    --set data.vocabulary=8000 --set "
          "data.tokenizer_path=text.model --out run\nA training without data.tokenizer_path trains "
          "its own tokenizer, on its text for training.");
  Choose(program, train, [options] {
    return TrainTokenizer(options->text, options->vocabulary, options->out);
  });

  CLI::App* show = group->add_subcommand("show", "Print size and SHA-256 of a tokenizer");
  Required(show, "TOKENIZER", options->tokenizer, "A file of `numsim tokenizer train`");
  show->add_option("TEXT", options->text, "Also print how many tokens this text has")
      ->check(NotEmpty());
  show->add_flag("--pieces", options->pieces, "Print the text of every entry");
  Example(show, "numsim tokenizer show text.model text.txt");
  Choose(program, show, [options] {
    return ShowTokenizer(options->tokenizer, options->text, options->pieces);
  });

  CLI::App* encode = group->add_subcommand("encode", "Write the tokens of a text");
  Required(encode, "TOKENIZER", options->tokenizer, "A file of `numsim tokenizer train`");
  Required(encode, "TEXT", options->text, "The text");
  Required(encode, "OUT", options->out, "Output file, .npy of uint16");
  Example(encode, "numsim tokenizer encode text.model text.txt tokens.npy");
  Choose(program, encode, [options] {
    return EncodeText(options->tokenizer, options->text, options->out);
  });

  CLI::App* decode = group->add_subcommand("decode", "Write the text of tokens");
  Required(decode, "TOKENIZER", options->tokenizer, "A file of `numsim tokenizer train`");
  Required(decode, "TOKENS", options->text, "Tokens, .npy of uint16");
  Required(decode, "OUT", options->out, "Output file, the text");
  Example(decode, "numsim tokenizer decode text.model tokens.npy text.txt");
  Choose(program, decode, [options] {
    return DecodeTokens(options->tokenizer, options->text, options->out);
  });
}

}  // namespace numsim::apps
