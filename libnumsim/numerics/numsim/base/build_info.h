// The source and the tools that this library was built with, for manifests and bug reports.
#pragma once

#include <string_view>

namespace numsim {

std::string_view BuildVersion();   // "0.2.0"
std::string_view BuildCommit();    // git commit, plus "-dirty" if sources differ; or "unknown"
std::string_view BuildCompiler();  // "GNU 12.2.0"
std::string_view BuildType();      // CMake's build type: "Release"

}  // namespace numsim
