// Memory that kernels need beside a stored moment, at the place where they run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/backend/matrix.h"
#include "numsim/moments/moment_format.h"

namespace numsim {

// Returns the bytes of MomentTables of the format.
Buffer<uint8_t> MomentTablesAt(const MomentFormat& format, bool is_signed, Place place);

// Returns an empty MomentRange for each scale of a moment of n elements.
Buffer<uint32_t> EmptyRanges(const MomentFormat& format, size_t n, Place place);

}  // namespace numsim
