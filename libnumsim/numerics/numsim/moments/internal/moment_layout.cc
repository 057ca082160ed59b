#include "numsim/moments/internal/moment_layout.h"

#include "numsim/moments/moment_store.h"
#include "numsim/quantize/shared/scale_grid.h"

namespace numsim {

bool PacksCodes(const MomentFormat& format) {
  return format.scaling != MomentScaling::kDynamic && format.format.spec.Bits() <= 4;
}

size_t MomentCodeBytes(const MomentFormat& format, size_t n) {
  if (format.IsExact()) return 4 * n;
  if (PacksCodes(format)) return CeilDiv(n, 2);
  return static_cast<size_t>(format.format.spec.StorageBytes()) * n;
}

size_t MomentScaleCount(const MomentFormat& format, size_t n) {
  switch (format.scaling) {
    case MomentScaling::kNone:
      return 0;
    case MomentScaling::kTensor:
      return 1;
    case MomentScaling::kBlock:
    case MomentScaling::kDynamic:
      return CeilDiv(n, format.block);
    case MomentScaling::kCoat:
      return 2 * CeilDiv(n, format.block);
  }
  return 0;
}

void PackCodes(const uint8_t* codes, size_t n, uint8_t* bytes) noexcept {
  for (size_t i = 0; i + 1 < n; i += 2) {
    bytes[i / 2] = static_cast<uint8_t>(codes[i] | codes[i + 1] << 4);
  }
  if (n % 2 != 0) bytes[n / 2] = codes[n - 1];
}

void UnpackCodes(const uint8_t* bytes, size_t n, uint8_t* codes) noexcept {
  for (size_t i = 0; i < n; ++i) codes[i] = (bytes[i / 2] >> (i % 2 * 4)) & 0xF;
}

double MomentBytes(const MomentFormat& format, size_t n) {
  return static_cast<double>(MomentCodeBytes(format, n) + 4 * MomentScaleCount(format, n));
}

}  // namespace numsim
