// Who may read a store: its owner and its group. Files are 0640 and folders 0750, whatever the
// umask says; these two are for those that are there already.
#pragma once

#include <string>

namespace cellar {

// Of a regular file of this user, no link.
void SetStoreFileMode(const std::string& path);
// Takes the others' rights to a folder away, and the group's to write there; gives none. Not of a
// folder that has another purpose, whoever keeps a store there: the root, a home, one for all.
void LimitStoreFolderMode(const std::string& folder);

}  // namespace cellar
