// Writing of .safetensors files [safetensors].
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "numsim/io/array.h"

namespace numsim {

// Replaces the file in one step (see atomic_file.h); SafetensorsFile reads it back, but for U64,
// which it does not read. Data begin at a multiple of 8 bytes and lie in descending order of
// element size, otherwise as given, so that a program that maps the file finds every tensor
// aligned. The same arguments give the same bytes.
// Requires bytes of the length that type and shape ask for, names that differ and are not
// "__metadata__", and metadata keys that differ. Throws Error naming the file, when it cannot be
// written, or the name or metadata entry that is not UTF-8.
void WriteSafetensors(const std::filesystem::path& path,
                      std::span<const std::pair<std::string, Array>> tensors,
                      std::span<const std::pair<std::string, std::string>> metadata = {});

}  // namespace numsim
