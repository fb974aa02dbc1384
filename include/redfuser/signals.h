// Removal of unfinished files when a signal ends the program.
#pragma once

namespace redfuser {

// For a program's main(), before it starts threads. From then on:
//   SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU  remove the files that are being written, then end
//                                              the process as they do by default; one that the
//                                              process ignores stays ignored
//   SIGPIPE, SIGXFSZ                           are ignored, so that the write fails with an error
// Without it a signal in the middle of a write may leave a temporary file beside the target.
void remove_unfinished_files_on_signals();

// Removes the files that are being written. For a program that is about to end while another of its
// threads writes.
void remove_unfinished_files();

}  // namespace redfuser
