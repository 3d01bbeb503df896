# Counts rows and cells of the package index, from `apt-cache dumpavail` itself: the figures that the demo
# compares the server's with. It shares no line with packages_to_json.py, on purpose.
# Prints: rows, newest cells, all versions of cells (a package may be listed in several versions).
BEGIN {
  split("Version Section Priority Maintainer Architecture Source Homepage Description Multi-Arch " \
        "Installed-Size Size", names, " ")
  for (i in names) wanted[names[i]] = 1
}
function close_paragraph(   parts, n, i, word, seen, column) {
  if (package == "") return
  rows[package] = 1
  n = split(depends, parts, /[,|]/)
  for (i = 1; i <= n; i++) {
    word = parts[i]
    sub(/^ */, "", word)
    sub(/[ (:].*$/, "", word)
    if (word != "") columns["dep:" word] = 1
  }
  n = split(tags, parts, /,/)
  for (i = 1; i <= n; i++) {
    word = parts[i]
    gsub(/ /, "", word)
    if (word != "") columns["tag:" word] = 1
  }
  for (column in columns) {
    versions++
    newest[package SUBSEP column] = 1
  }
  delete columns
  package = depends = tags = field = ""
}
/^$/ { close_paragraph(); next }
/^[ \t]/ {
  if (field == "Depends") depends = depends " " $0
  if (field == "Tag") tags = tags " " $0
  next
}
{
  field = substr($0, 1, index($0, ":") - 1)
  value = substr($0, index($0, ":") + 1)
  sub(/^ */, "", value)
  if (field == "Package") package = value
  if (field == "Depends") depends = value
  if (field == "Tag") tags = value
  if ((field in wanted) && value != "") columns["meta:" field] = 1
}
END {
  close_paragraph()
  for (row in rows) row_count++
  for (cell in newest) newest_count++
  print row_count + 0, newest_count + 0, versions + 0
}
