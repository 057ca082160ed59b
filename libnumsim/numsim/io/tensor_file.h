// Reads tensors from .npy and .safetensors files, and converts them exactly to float32 or float64.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/io/array.h"
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

  // Returns "FILE: tensor 'NAME'", for messages.
  std::string Describe(const TensorInfo& tensor) const;

 private:
  std::filesystem::path path_;
  std::optional<SafetensorsFile> safetensors_;  // nullopt: a .npy file
  std::vector<TensorInfo> npy_;
};

// Returns the exact values of a float32, float16, bfloat16, e4m3fn or e5m2 array, in its order.
// NaNs of types other than float32 are those of numsim::Decode. `what` names the array in messages.
// Throws Error for float64, which does not fit, and for integer arrays, which hold codes of a
// format that the file does not name.
std::vector<float> ToFloat32(const Array& array, std::string_view what);

// The float64 version of ToFloat32, which also accepts float64 arrays.
std::vector<double> ToFloat64(const Array& array, std::string_view what);

}  // namespace numsim
