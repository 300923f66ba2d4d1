import { filter, firstValueFrom, map, type Observable, switchMap, take } from 'rxjs';
import { type Feed, replay$, type ReplayedFrame } from '../../index.js';
import { CliError } from '../cli-error.js';
import { ExitCode } from '../exit-code.js';
import { printable } from '../view/printable.js';

/** Where the frames of `serve --replay` come from, and how fast. */
export interface ReplaySourceOptions {
  readonly file: string;
  /** How many times as fast as recorded. */
  readonly speed: number;
  /** Emits when a client of a feed has connected: what that feed waits for. */
  readonly firstClient: (feed: Feed) => Observable<unknown>;
}

/** A recording to serve, and what to say of it. */
export interface ReplaySource {
  /** The payloads of a feed, with their recorded spacing from its first client on. */
  readonly payloads: (feed: Feed) => Observable<string | Uint8Array>;
  /** The feed that its first frame is of. */
  readonly feed: Feed;
  readonly description: string;
}

/**
 * Opens a recording to serve.
 *
 * @throws RecordingError when it cannot be read
 */
export const openReplay = async ({ file, speed, firstClient }: ReplaySourceOptions): Promise<ReplaySource> => {
  const first = await firstValueFrom(frames$(file, Infinity), { defaultValue: undefined });
  if (first === undefined) throw new CliError(ExitCode.local, 'The recording of --replay holds no frame.');
  return {
    payloads: (feed) =>
      firstClient(feed).pipe(
        take(1),
        switchMap(() => frames$(file, speed)),
        filter((frame) => frame.feed === feed),
        map((frame) => (frame.isBinary ? frame.data : frame.text())),
      ),
    feed: first.feed,
    description: `its frames of ${printable(file)}, ${paceWords(speed)}, from when its first client connects`,
  };
};

const frames$ = (file: string, speed: number): Observable<ReplayedFrame> =>
  replay$(file, { speed }).pipe(filter((event) => event.type === 'frame'));

const paceWords = (speed: number): string => {
  if (speed === 1) return 'as recorded';
  return speed === Infinity ? 'as fast as possible' : `${speed} times as fast`;
};
