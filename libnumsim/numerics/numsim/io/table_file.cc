#include "numsim/io/table_file.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/base/split_list.h"
#include "numsim/formats/value_table.h"
#include "numsim/io/input_file.h"
#include "numsim/io/npy.h"

namespace numsim {
namespace {

constexpr std::string_view kTablePrefix = "table:";
// Larger files are not read: 256 numbers with comments are far below it.
constexpr uint64_t kMostTableBytes = 1 << 20;

template <typename Float>
std::vector<float> NumbersOf(const Array& array) {
  const Float* const data = array.Data<Float>();
  std::vector<float> values;
  for (size_t i = 0; i < array.Elements(); ++i) values.push_back(static_cast<float>(data[i]));
  return values;
}

std::vector<float> ValuesOfNpy(const std::filesystem::path& path) {
  const Array array = ReadNpy(path);
  const bool floats = array.type == ElementType::kF32 || array.type == ElementType::kF64;
  if (array.shape.size() != 1 || !floats) {
    throw Error::Format("{}: {} of shape {}, expected float32 or float64 of one dimension",
                        Printable(path.string()),
                        ToString(array.type),
                        ShapeToString(array.shape));
  }
  return array.type == ElementType::kF32 ? NumbersOf<float>(array) : NumbersOf<double>(array);
}

std::vector<float> ValuesOfText(const std::filesystem::path& path) {
  constexpr std::string_view kBlanks = " \t\r\n,";
  const std::string text = ReadText(path);
  std::vector<float> values;
  size_t line = 1;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (kBlanks.find(text[at]) != kBlanks.npos) {
      line += text[at++] == '\n' ? 1 : 0;
    } else {
      const size_t end = std::min(text.find_first_of(" \t\r\n,#", at), text.size());
      const size_t begin = text[at] == '+' ? at + 1 : at;
      float value = 0;
      const auto [stop, status] = std::from_chars(text.data() + begin, text.data() + end, value);
      if (status != std::errc() || stop != text.data() + end) {
        throw Error::Format("{}:{}: '{}' is not a number that float32 holds",
                            Printable(path.string()),
                            line,
                            Printable(text.substr(at, end - at)));
      }
      values.push_back(value);
      at = end;
    }
  }
  return values;
}

}  // namespace

Format ReadTable(const std::filesystem::path& path) {
  if (InputFile(path).Size() > kMostTableBytes) {
    throw Error::Format("{}: larger than 1 MiB, expected a table of 2 to 256 values",
                        Printable(path.string()));
  }
  const bool npy = path.extension() == ".npy";
  return AddTable(path.string(), npy ? ValuesOfNpy(path) : ValuesOfText(path));
}

Format ParseCastFormat(std::string_view text) {
  if (text.starts_with(kTablePrefix))
    return ReadTable(std::string(text.substr(kTablePrefix.size())));
  return ParseFormatOrTable(text);
}

std::vector<Format> ParseCastFormatList(std::string_view text) {
  std::vector<Format> formats;
  for (const std::string& piece : SplitFormatList(text)) formats.push_back(ParseCastFormat(piece));
  return formats;
}

}  // namespace numsim
