// Writes that survive a loss of power. A file that was written and closed may be empty afterwards, and
// a new, renamed or removed name may be undone, until file and directory are synced.
#pragma once

#include <filesystem>
#include <system_error>

namespace numsim {

// Waits until the bytes of an open file, or the names in an open directory, are on the medium. Returns
// an error if that fails; none where the file system cannot sync, as some network file systems.
std::error_code SyncDescriptor(int descriptor);

// The same for a path. For a file, syncs what every process has written to it.
std::error_code SyncPath(const std::filesystem::path& path);

// Syncs the names in the directory that holds `path`.
std::error_code SyncNameOf(const std::filesystem::path& path);

// Creates a directory with its parents, and syncs their names. Returns no error if it exists.
std::error_code MakeDirectories(const std::filesystem::path& directory);

// Removes a file and syncs its name. Returns no error if there is none.
std::error_code RemoveFile(const std::filesystem::path& path);

}  // namespace numsim
