// Cases as arrays: shape (cases, columns), unsigned integers of the smallest type that holds every
// column.
#pragma once

#include <filesystem>

#include "numsim/io/array.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim {

// The rows as an array, made on all threads. Throws Error that begins with `path` when a column has
// more bits than an element of a .npy file here can have.
Array CaseArray(const CaseRows& rows, const std::filesystem::path& path);

// Adds every case of a .npy file to `total`, on all threads; `place` of a case is its row, from 0
// on. The number of columns says whether there are flags, which `require_flags` demands. Throws
// Error that begins with `path`: another type or shape, a number that its column cannot hold (row
// and column are named), no cases.
void TallyNpy(const std::filesystem::path& path,
              const CaseColumns& columns,
              bool require_flags,
              CaseTally& total);

}  // namespace numsim
