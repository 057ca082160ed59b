// Tensors that are quantised already: codes with given scales in .safetensors or .npy files.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/tensor_argument.h"
#include "numsim/io/tensor_file.h"
#include "numsim/quantize/given_scales.h"

namespace numsim::apps {

// Codes and scales as the user describes them. Empty: the file tells.
struct GivenOptions {
  std::string format;       // of codes whose type does not name one
  std::string granularity;  // of scales whose shape does not tell the size of their blocks
};

// A quantised tensor: value = code value * scale, rounded to float32.
struct GivenTensor {
  std::string name;         // without the suffix of packed codes
  std::string scales_name;  // and their format, if they are codes
  Format format;
  Array codes;  // of CodeType(format), one per element
  ScalePlacement placement;
  std::vector<float> scales;

  // Returns matrix i of the stack.
  QuantizedMatrix Matrix(size_t i) const;
  // Returns all values, in the order of the codes.
  std::vector<float> Values() const;
};

// The names of the tensors of a file that belong to one quantised tensor. With BASE the name of the
// tensor of codes, or what is before its suffix _packed or _blocks:
//   BASE_scale, BASE_scale_inv, BASE_scales   the scales; all multiply
//   BASE_scale_2                              multiplies the scales (NVFP4 as ModelOpt stores it)
//   BASE_global_scale                         divides the scales (NVFP4 as compressed-tensors does)
struct GivenNames {
  std::string name, codes, scales;
  std::string factor, divisor;  // empty: none
};

// Returns the quantised tensors of a file, in its order. Codes have a type of up to 8 bits.
std::vector<GivenNames> FindGivenTensors(const TensorFile& file);

// Returns the names of all tensors that belong to quantised tensors.
std::set<std::string> PartsOf(const std::vector<GivenNames>& given);

// Reads a quantised tensor. Its format is that of the options, else that of the file's metadata or of
// the element type, else FP4 (e2m1fn) where the scales are those of NVFP4 or MXFP4. Codes of 4 bits in
// the type U8 of a .safetensors file are packed, two per byte, the first in the lower half. Scales of
// the type U8, or of raw bytes, are codes of e8m0fnu. Blocks of scales have the sizes of the options,
// else those of the metadata, else the usual ones: 128x128 for _scale_inv, 32 for e8m0fnu, 16 for
// scales of e4m3fn. Throws Error that names the tensor at fault.
GivenTensor ReadGivenTensor(const TensorFile& file,
                            const GivenNames& names,
                            const GivenOptions& options);

// Returns scales as float32. Throws Error that names `what` if a float64 number does not fit, and for
// codes.
std::vector<float> ScalesOf(const Array& array, const std::string& what);

// Reads codes and scales that two arguments name (ReadTensor). Codes in a .npy file are one per
// element. Throws Error as ReadGivenTensor does.
GivenTensor JoinGivenTensor(const std::string& codes,
                            const std::string& scales,
                            const GivenOptions& options);

}  // namespace numsim::apps
