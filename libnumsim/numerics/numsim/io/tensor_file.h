// Reads tensors from .npy and .safetensors files, and converts them exactly to float32 or float64.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/io/array.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/safetensors.h"

namespace numsim {

// A .npy file (one tensor, named after the file without its extension) or a .safetensors file. The
// header is checked on opening; data are read on demand.
class TensorFile {
 public:
  // Throws Error naming the file if it has another extension, and as ReadNpyHeader and
  // SafetensorsFile do.
  explicit TensorFile(const std::filesystem::path& path);

  // The tensors in the order of the file.
  const std::vector<TensorInfo>& Tensors() const;

  // Returns the tensor of that name; for an empty name, the only tensor of the file. Throws Error
  // listing names of the file if there is no such tensor, or if the name is empty and the file does
  // not have exactly one tensor.
  const TensorInfo& Find(std::string_view name) const;

  // Reads the tensor that Find returns. Throws Error as Find does, and if numsim cannot read the
  // tensor's dtype.
  Array Read(std::string_view name) const;

  // The entries of __metadata__ of a .safetensors file; none for a .npy file.
  const std::vector<std::pair<std::string, std::string>>& Metadata() const;

  // Returns "FILE: tensor 'NAME'", for messages.
  std::string Describe(const TensorInfo& tensor) const;

 private:
  std::filesystem::path path_;
  std::optional<SafetensorsFile> safetensors_;  // nullopt: a .npy file
  std::vector<TensorInfo> npy_;
};

// Returns whether elements of this type are integers and no codes: signed ones of 16 to 64 bits, and
// unsigned ones of 64 bits, which no format has as codes.
bool IsInteger(ElementType type);

// Returns the exact values of an array whose type has a format (FormatOf), in its order; int8 counts
// as numbers. NaNs of types other than float32 are those of numsim::Decode. `what` names the array in
// messages. Takes float64 and IsInteger() types too, but throws Error that names the first element
// that float32 does not hold exactly. Throws Error for the other types of WhyNoNumbers().
std::vector<float> ToFloat32(const Array& array, std::string_view what);

// The float64 version of ToFloat32.
std::vector<double> ToFloat64(const Array& array, std::string_view what);

// Returns why an array of this type has no values: unsigned integers of up to 32 bits and raw bytes
// are codes of a format that the file does not name, wider integers and booleans are not numbers of a
// format. Returns "" for the types of which ToFloat64 takes every array.
std::string_view WhyNoNumbers(ElementType type);

// Writing.

// Returns whether the extension is .npy or .safetensors, or .safetensors.
bool IsTensorFileName(const std::filesystem::path& path);
bool IsSafetensorsName(const std::filesystem::path& path);

// Writes tensors to `file`, a new AtomicFile for `path`, as the extension of `path` says, and leaves
// Commit to the caller, who can then write several files before any of them appears. A .npy file
// holds one tensor, without its name and without metadata. Requires IsTensorFileName(path), and names
// and bytes as WriteSafetensors does; throws Error if a type has no name in the file, and if the file
// cannot be written.
void AppendTensors(const std::filesystem::path& path,
                   std::span<const std::pair<std::string, Array>> tensors,
                   std::span<const std::pair<std::string, std::string>> metadata,
                   AtomicFile& file);

}  // namespace numsim
