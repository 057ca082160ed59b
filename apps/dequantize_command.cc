// `numsim dequantize`: the values of codes with given scales, such as those of a quantised checkpoint.
#include <fmt/format.h>

#include <cstring>

#include "apps/code_array.h"
#include "apps/command.h"
#include "apps/format_text.h"
#include "apps/given_tensor.h"
#include "apps/tensor_argument.h"
#include "numsim/cast/cast.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/table_file.h"
#include "numsim/io/tensor_file.h"

namespace numsim::apps {
namespace {

struct DequantizeOptions {
  std::string in, out, scales;
  std::string to = "float32";
  GivenOptions given;
};

// The tensors of OUT, and what is said about them.
struct DequantizedFile {
  std::vector<NamedArray> tensors;
  Metadata metadata;
  std::vector<std::string> left_out;  // a line on each
  std::string report;
};

// Returns the values as elements of the type; float16 and bfloat16 are rounded to nearest even.
Array AsElements(const std::vector<float>& values,
                 const std::vector<size_t>& shape,
                 const std::string& type) {
  Array array{ElementType::kF32, shape, std::vector<std::byte>(values.size() * sizeof(float))};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  if (type == "float32") return array;
  Array small{type == "bfloat16" ? ElementType::kBf16 : ElementType::kF16, shape, {}};
  small.bytes.resize(values.size() * sizeof(uint16_t));
  const EncodePlan plan = MakeEncodePlan(
      ParseFormat(FormatOf(small.type)).spec, {RoundingMode::kNearestEven}, Overflow::kNonsaturate);
  Encode(plan, std::span(values), std::span(small.Data<uint16_t>(), values.size()));
  return small;
}

void AddValues(DequantizedFile& contents, const GivenTensor& tensor, const std::string& type) {
  const std::string layout = ToString(tensor.placement.layout);
  const size_t matrices = tensor.placement.stack.matrices;
  contents.report += fmt::format("{}: {} codes of {}, scales {} per {}{}\n",
                                 tensor.name,
                                 ShapeToString(tensor.codes.shape),
                                 tensor.format.name,
                                 tensor.scales_name,
                                 layout,
                                 matrices > 1 ? fmt::format(" of {} matrices", matrices) : "");
  contents.tensors.emplace_back(tensor.name, AsElements(tensor.Values(), tensor.codes.shape, type));
}

// Codes and scales of two files.
DequantizedFile OfTwoFiles(const DequantizeOptions& options) {
  DequantizedFile contents;
  AddValues(contents, JoinGivenTensor(options.in, options.scales, options.given), options.to);
  return contents;
}

// Copies the tensors of a file that belong to no quantised tensor, as they are.
void CopyOthers(const TensorFile& file,
                const std::vector<GivenNames>& given,
                DequantizedFile& contents) {
  const std::set<std::string> used = PartsOf(given);
  size_t copied = 0;
  for (const TensorInfo& tensor : file.Tensors()) {
    if (used.contains(tensor.name)) continue;
    if (!tensor.type) {
      contents.left_out.push_back(fmt::format("{}: dtype {}", tensor.name, tensor.dtype));
      continue;
    }
    contents.tensors.emplace_back(tensor.name, file.Read(tensor.name));
    ++copied;
  }
  for (const auto& [key, value] : file.Metadata()) {
    if (!key.starts_with("numsim.")) contents.metadata.emplace_back(key, value);
  }
  if (copied > 0)
    contents.report += fmt::format("{} other tensors are copied as they are\n", copied);
}

DequantizedFile OfCheckpoint(const DequantizeOptions& options) {
  const TensorArgument argument = ParseTensorArgument(options.in);
  const TensorFile file(argument.file);
  std::vector<GivenNames> given = FindGivenTensors(file);
  const bool one = !argument.tensor.empty();
  if (one) {
    std::erase_if(given, [&](const GivenNames& names) {
      return names.name != argument.tensor && names.codes != argument.tensor;
    });
  }
  if (given.empty()) {
    throw Error::Format(
        "{}: no tensor NAME of codes has scales NAME_scale, NAME_scale_inv or NAME_scales; --scales "
        "names scales of another file or name",
        options.in);
  }
  DequantizedFile contents;
  for (const GivenNames& names : given) {
    AddValues(contents, ReadGivenTensor(file, names, options.given), options.to);
  }
  if (!one) CopyOthers(file, given, contents);
  return contents;
}

int RunDequantize(const DequantizeOptions& options) {
  CheckTensorOutput("OUT", options.out);
  if (!options.given.format.empty()) ParseCastFormat(options.given.format);
  if (!options.given.granularity.empty()) ParseScaleLayout(options.given.granularity);
  CheckKeepsInputs(
      "OUT",
      options.out,
      {ParseTensorArgument(options.in).file, ParseTensorArgument(options.scales).file});
  const DequantizedFile contents =
      options.scales.empty() ? OfCheckpoint(options) : OfTwoFiles(options);
  if (!IsSafetensorsName(options.out) && contents.tensors.size() != 1) {
    throw Error::Format(
        "OUT: {} holds one array, and {} has {} tensors; name one as FILE:NAME, or "
        "write .safetensors",
        options.out,
        options.in,
        contents.tensors.size());
  }
  AtomicFile out(options.out);
  AppendTensors(options.out, contents.tensors, contents.metadata, out);
  out.Commit();
  fmt::print("{}", contents.report);
  if (!contents.left_out.empty()) {
    fmt::print("left out: {} tensors\n", contents.left_out.size());
    for (const std::string& line : contents.left_out) fmt::print("  {}\n", line);
  }
  return 0;
}

}  // namespace

void AddDequantizeCommand(Program& program) {
  auto options = std::make_shared<DequantizeOptions>();
  CLI::App* sub = program.app.add_subcommand(
      "dequantize", "Write the values of codes with given scales, such as a quantised checkpoint");
  sub->add_option("IN",
                  options->in,
                  "A .safetensors file whose tensors NAME have scales NAME_scale or "
                  "NAME_scale_inv; FILE.safetensors:NAME for one of them; or codes, with --scales")
      ->required()
      ->check(NotEmpty());
  sub->add_option("OUT",
                  options->out,
                  "Output file, .safetensors (other tensors are copied) or .npy for one tensor")
      ->required()
      ->check(NotEmpty());
  sub->add_option("--scales",
                  options->scales,
                  "Scales of IN, where they are in another file: .npy, .safetensors or "
                  "FILE.safetensors:NAME")
      ->check(NotEmpty());
  sub->add_option("--format",
                  options->given.format,
                  FormatHelp("Format of codes whose element type does not name it"))
      ->check(NotEmpty());
  sub->add_option(
         "--granularity",
         options->given.granularity,
         "Codes that share a scale: tensor, row, column, block:N or tile:ROWSxCOLS "
         "(default: from the shape of the scales; for a grid, from the file's metadata, else "
         "tile:128x128 for NAME_scale_inv, block:32 for scales of e8m0fnu, block:16 for those of e4m3fn)")
      ->check(NotEmpty());
  sub->add_option("--to", options->to, "Element type of the values")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->capture_default_str();
  Example(
      sub,
      "numsim dequantize model-fp8.safetensors model.safetensors\n"
      "  numsim dequantize codes.npy w.npy --scales scales.npy --format e4m3fn --granularity "
      "tile:128x128\nA value is code value times scale, rounded to float32. docs/files.md "
      "describes the names and\nlayouts; `numsim stats --against` compares them with the original.");
  Choose(program, sub, [options] { return RunDequantize(*options); });
}

}  // namespace numsim::apps
