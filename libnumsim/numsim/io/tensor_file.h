// One front door to tensors in files, and their exact values as float32 or float64.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/io/array.h"
#include "numsim/io/safetensors.h"

namespace numsim {

// A .npy file (one tensor, named after the file without extension) or a .safetensors file. Headers
// are checked on opening, data read on demand.
class TensorFile {
 public:
  // Throws Error naming the file when its extension is another one, or as ReadNpyHeader and
  // SafetensorsFile do.
  explicit TensorFile(const std::filesystem::path& path);

  // In the order of the file.
  const std::vector<TensorInfo>& Tensors() const;

  // The tensor of that name; with an empty name the only tensor of the file. Throws Error listing
  // names of the file when there is no such tensor or more than one to choose from.
  const TensorInfo& Find(std::string_view name) const;

  // Reads the tensor that Find gives. Throws Error when numsim cannot read its dtype.
  Array Read(std::string_view name) const;

  // Returns "FILE: tensor 'NAME'", for messages.
  std::string Describe(const TensorInfo& tensor) const;

 private:
  std::filesystem::path path_;
  std::optional<SafetensorsFile> safetensors_;  // none: a .npy file
  std::vector<TensorInfo> npy_;
};

// Returns the values of a float32, float16, bfloat16, e4m3fn or e5m2 array, exactly, in its order;
// NaNs other than float32's as numsim::Decode gives them. `what` names the array in messages.
// Throws Error for float64, which does not fit, and for integer arrays, which hold codes of a
// format that the file does not name.
std::vector<float> ToFloat32(const Array& array, std::string_view what);

// The same as float64, from float64 too.
std::vector<double> ToFloat64(const Array& array, std::string_view what);

}  // namespace numsim
