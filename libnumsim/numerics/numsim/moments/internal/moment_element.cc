#include "numsim/moments/shared/moment_element.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/moments/dynamic_map.h"
#include "numsim/moments/internal/moment_layout.h"
#include "numsim/moments/moment_coat.h"
#include "numsim/moments/shared/moment_at_place.h"

namespace numsim {

MomentCodec::MomentCodec(const MomentFormat& moment,
                         bool is_signed_moment,
                         const MomentTables* at_place)
    : scaling(moment.scaling),
      exact(moment.IsExact()),
      packed(PacksCodes(moment)),
      wide(moment.format.spec.StorageBytes() == 2),
      is_signed(is_signed_moment),
      has_blocks(moment.HasBlocks()),
      block(moment.block),
      max(MaxFinite(moment.format.spec)),
      least(MinPositive(moment.format.spec)),
      log_range(scaling == MomentScaling::kCoat ? CoatFormat(moment.format.spec).log_range() : 0),
      plan(MakeEncodePlan(moment.format.spec, moment.rounding, Overflow::kSaturate)),
      encode(MakeEncodeShortcut(plan)),
      decode(MakeDecodeShortcut(moment.format.spec)),
      factory(moment.format.spec, ScaleRule::kAbsmax),
      tables(at_place) {}

MomentTables MakeMomentTables(const MomentFormat& moment, bool is_signed) {
  MomentTables tables{};
  const FormatSpec& format = moment.format.spec;
  if (moment.scaling == MomentScaling::kDynamic) {
    const DynamicMap& map = DynamicMap::Get(is_signed);
    std::ranges::copy(map.values(), tables.values);
    std::copy_n(map.thresholds(), 256, tables.thresholds);
  } else if (format.Bits() <= 8) {
    for (uint32_t code = 0; code <= format.CodeMask(); ++code) {
      tables.values[code] = Decode(format, code);
    }
  }
  if (moment.scaling == MomentScaling::kCoat) {
    std::ranges::copy(CoatFormat(format).log_ratios(), tables.log_ratios);
  }
  return tables;
}

void CheckMomentOnDevice(const MomentFormat& moment) {
  if (moment.format.spec.subnormal_shift == 0) return;
  throw Error::Format("the device has no moments in {}: the format has a subnormal gap",
                      ToString(moment));
}

Buffer<uint8_t> MomentTablesAt(const MomentFormat& format, bool is_signed, Place place) {
  const MomentTables tables = MakeMomentTables(format, is_signed);
  std::vector<uint8_t> bytes(sizeof(tables));
  std::memcpy(bytes.data(), &tables, sizeof(tables));
  return CopyAt(bytes, place);
}

Buffer<uint32_t> EmptyRanges(const MomentFormat& format, size_t n, Place place) {
  const size_t numbers = format.scaling == MomentScaling::kCoat ? 2 : 1;
  std::vector<uint32_t> ranges(2 * (MomentScaleCount(format, n) / numbers));
  for (size_t i = 1; i < ranges.size(); i += 2) ranges[i] = 0xFFFFFFFFu;
  return CopyAt(ranges, place);
}

}  // namespace numsim
