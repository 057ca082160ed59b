// How an optimiser's moments are stored: a format, a scaling, a rounding.
// docs/moments.md has the formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

enum class MomentScaling : uint8_t {
  kNone,    // a plain cast that saturates
  kTensor,  // absmax of the tensor, float32 scale; code = cast(x * M/absmax)
            // [Fishman]
  kBlock,   // absmax of each block of consecutive elements [torchao]
  // COAT's dynamic range expansion in blocks [COAT]: |x| -> M (|x| / absmax)^k.
  // Zeros do not enter a block's least magnitude, and a block whose magnitudes
  // are all equal has k = 1, so both are safe (moment_coat.h).
  kCoat,
  // bitsandbytes' dynamic 8-bit map in blocks, signed for m and unsigned for v
  // [bitsandbytes8]. The format is then "dynamic", not one of the table.
  kDynamic,
};
// none tensor block coat dynamic.
std::string_view ToString(MomentScaling scaling);

struct MomentFormat {
  Format format;  // kDynamic: int8, for its width alone
  MomentScaling scaling = MomentScaling::kNone;
  size_t block = 128;  // of kBlock, kCoat, kDynamic
  // Nearest even; stochastic, variant A, with bits 1..32. Of kCoat: of the
  // expanded value. Of kDynamic: to the nearer value, ties up; or stochastic
  // between the two neighbours.
  Rounding rounding;

  // float32 without a scale: nothing is lost.
  bool IsExact() const;
  // Whether `block` means something.
  bool HasBlocks() const;
};

// FORMAT[@SCALING[:BLOCK]][+sr[:BITS]]: "fp32", "bf16", "e4m3fn@tensor",
// "e5m2@block:128", "e4m3@coat:128+sr", "dynamic:256" (the map in blocks of
// 256). Default scaling: tensor for formats of up to 8 bits, none for wider
// ones; default block 128, of dynamic 256. Formats: of up to 16 bits with a
// sign and a zero, with coat of up to 8; or fp32 without scale or stochastic
// rounding. Throws Error saying what was expected.
MomentFormat ParseMomentFormat(std::string_view text);
// Lists separated by commas.
std::vector<MomentFormat> ParseMomentFormatList(std::string_view text);
// The text that reads back to the same; defaults are left out.
std::string ToString(const MomentFormat& format);

}  // namespace numsim
