#include "apps/tensor_argument.h"

#include <filesystem>

#include "apps/code_array.h"
#include "apps/command.h"
#include "numsim/base/printable.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/npy.h"
#include "numsim/io/tensor_file.h"

namespace numsim::apps {

TensorArgument ParseTensorArgument(const std::string& text) {
  constexpr std::string_view kMark = ".safetensors:";
  const size_t mark = text.find(kMark);
  if (mark == std::string::npos) return {text, ""};
  const size_t end = mark + kMark.size();
  return {text.substr(0, end - 1), text.substr(end)};
}

NamedArray ReadTensor(const std::string& text) {
  const TensorArgument argument = ParseTensorArgument(text);
  const std::filesystem::path path = argument.file;
  if (!IsSafetensorsName(path)) return {path.stem().string(), ReadNpy(path)};
  const TensorFile file(path);
  const TensorInfo& tensor = file.Find(argument.tensor);
  return {tensor.name, file.Read(tensor.name)};
}

void CheckTensorOutput(std::string_view what,
                       const std::string& file,
                       std::initializer_list<std::string> inputs) {
  if (!IsTensorFileName(file)) {
    const std::string extension = std::filesystem::path(file).extension().string();
    throw Error::Format("{}: {} has {}, expected .npy or .safetensors",
                        what,
                        file,
                        extension.empty()
                            ? std::string("no extension")
                            : fmt::format("the extension '{}'", Printable(extension)));
  }
  for (const std::string& input : inputs) {
    const std::string path = ParseTensorArgument(input).file;
    if (!IsSafetensorsName(path) || !SameFile(file, path)) continue;
    if (TensorFile(path).Tensors().size() < 2) continue;
    throw Error::Format("{}: would replace {}, which has other tensors, too", what, path);
  }
}

void WriteTensor(const std::string& file, const NamedArray& tensor, const Metadata& metadata) {
  AtomicFile out(file);
  AppendTensors(file, std::span(&tensor, 1), metadata, out);
  out.Commit();
}

Array StoredCodes(const std::string& file, Array codes, const FormatSpec& format) {
  if (!IsSafetensorsName(file)) return codes;
  if (const auto type = TypeOfFormat(format)) codes.type = *type;
  return codes;
}

std::string FormatKey(const std::string& name) { return "numsim.format." + name; }
std::string GranularityKey(const std::string& name) { return "numsim.granularity." + name; }

Metadata CodeMetadata(const NamedArray& codes, const FormatSpec& format) {
  if (!FormatOf(codes.second.type).empty()) return {};
  return {{FormatKey(codes.first), ToString(format)}};
}

}  // namespace numsim::apps
