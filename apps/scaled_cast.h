// `numsim cast` with scales: codes of a quantised matrix, and its scales in a second file.
#pragma once

#include <string>

#include "apps/command.h"
#include "apps/rounding_options.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/array.h"
#include "numsim/quantize/scale_layout.h"

namespace numsim::apps {

struct ScaleOptions {
  std::string granularity = "tensor";
  std::string rule = "absmax";
  std::string out;         // file of the scales; empty: a cast without scales
  std::string tensor_out;  // file of the tensor's scale under two levels; empty: in the scales
  bool divide = false, nan_scales = false;  // QuantizeOptions

  bool Given() const { return !out.empty(); }
  // Throws Error that names what is at fault, before any file is read: an unknown granularity or
  // rule, a format whose matrices cannot be quantised, the extension of --scales-out, or the scales in
  // the same file as the input or, unless that is .safetensors, as the codes.
  void Check(const Format& format, const std::string& in, const std::string& codes_out) const;
};

// Adds --granularity, --scale, --tensor-scale-out and --scales-out to `sub`. `options` must live as
// long as `sub`. Returns the last of them.
CLI::Option* AddScaleOptions(CLI::App* sub, ScaleOptions& options);

// Codes with the shape of the input, and float32 scales: () for tensor, else the dimensions before the
// last two, and then (rows, 1), (1, columns), (rows, blocks of a row) or (tile bands, tiles of a band).
//
// With ScaleOptions::tensor_out the scales are those of the groups alone, numbers of e4m3fn, and
// `tensor_scales` has one number for each matrix.
struct ScaledCodes {
  Array codes, scales, tensor_scales;
  FormatSpec format;
  ScaleLayout layout;
};

// Quantises `in`. A float64 array is rounded once, from its exact values. Element i of the array uses
// the random bits i of stream 0 of the seed. Under `tensor` the whole array has one scale; otherwise
// the last two dimensions are a matrix, and each matrix of a stack has its own scales. Throws Error
// that names `file` if the granularity is not tensor and the array has less than two dimensions, or if
// the array holds no numbers.
ScaledCodes EncodeScaled(const ScaleOptions& options,
                         const RoundingOptions& rounding,
                         const Format& format,
                         const Array& in,
                         const std::string& file);

// Writes the files of `options` and that of the codes, or none as far as the file system permits. In a
// .safetensors file the codes are the tensor `name`, with metadata that state the granularity, and the
// scales NAME_scale; both files may then be the same. The scale of the tensor is NAME_scale_2.
void WriteScaledCodes(const ScaledCodes& matrix,
                      const std::string& name,
                      const std::string& codes_out,
                      const ScaleOptions& options);

}  // namespace numsim::apps
