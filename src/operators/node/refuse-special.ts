import { statSync } from 'node:fs';
import { RecordingError } from './recording-error.js';

/**
 * Refuses a path that cannot hold a recording: to open a pipe waits for its reader, and a pipe has no positions to write to.
 *
 * @throws RecordingError for a pipe or a socket
 */
export const refuseSpecial = (path: string): void => {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFIFO() || stats?.isSocket())
    throw new RecordingError(`Cannot write the recording ${path}: it is a pipe or a socket, not a file.`, { path });
};
