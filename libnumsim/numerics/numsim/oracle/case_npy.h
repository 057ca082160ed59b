// Reads and writes cases as arrays of shape (cases, columns). The elements are unsigned integers of
// the smallest type that holds every column.
#pragma once

#include <filesystem>

#include "numsim/io/array.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim {

// Returns the rows as an array. Uses all threads. Throws Error that begins with `path` if a column
// has more than 64 bits, the widest element that numsim writes to a .npy file.
Array CaseArray(const CaseRows& rows, const std::filesystem::path& path);

// Adds every case of a .npy file to `total`. Uses all threads. The `place` of a case is its row,
// counted from 0. The number of columns determines whether the cases include flags; if
// `require_flags` is true, they must. Throws Error that begins with `path` if the element type is
// not an unsigned integer, if it is too narrow for a column, if the shape is wrong, if a number
// does not fit into its column (the message names row and column), or if there are no cases.
void TallyNpy(const std::filesystem::path& path,
              const CaseColumns& columns,
              bool require_flags,
              CaseTally& total);

// Reads an array of inputs, as CaseArray() makes it without results. Returns the same rows with
// the results of `operation` and its flags, if it has them. Uses all threads. Throws Error that
// begins with `path`, as TallyNpy() does.
Array AnswerArray(const std::filesystem::path& path, const Operation& operation);

}  // namespace numsim
