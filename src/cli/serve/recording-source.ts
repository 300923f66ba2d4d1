import { filter, lastValueFrom, map, type Observable, scan, switchMap, take, takeWhile } from 'rxjs';
import { type Feed, replay$, type Replayed, type ReplayedFrame } from '../../index.js';
import { printable } from '../../protocol/printable.js';
import { CliError } from '../cli-error.js';
import { ExitCode } from '../exit-code.js';

/** The source of the frames of `serve --replay`. */
export interface RecordingSourceOptions {
  readonly file: string;
  /** A multiple of the recorded speed. */
  readonly speed: number;
  /** Emits when a client of a feed has connected. The feed waits for this. */
  readonly firstClient: (feed: Feed) => Observable<unknown>;
}

/** The payloads of a recording, and their description. */
export interface RecordingSource {
  /** Emits the payloads of a feed with the recorded intervals, beginning when its first client connects. */
  readonly payloads: (feed: Feed) => Observable<string | Uint8Array>;
  /** The feed of the first frame. */
  readonly feed: Feed;
  readonly description: (feed: Feed) => string;
}

/** How many bytes of a recording are searched for its feeds. */
const searchedBytes = 16 * 1024 * 1024;

/**
 * Opens a recording to serve.
 *
 * @throws RecordingError when the recording cannot be read; CliError when it contains no frame
 */
export const openRecordingSource = async ({
  file,
  speed,
  firstClient,
}: RecordingSourceOptions): Promise<RecordingSource> => {
  const { feeds, isComplete } = await feedsIn(file);
  if (isComplete && feeds.length === 0)
    throw new CliError(ExitCode.local, 'The recording of --replay contains no frame.');
  return {
    payloads: (feed) =>
      firstClient(feed).pipe(
        take(1),
        switchMap(() => startOf$(file, feed)),
        switchMap((offset) => replay$(file, { speed, offset })),
        filter((event): event is ReplayedFrame => event.type === 'frame' && event.feed === feed),
        map((frame) => (frame.isBinary ? frame.data : frame.text())),
      ),
    feed: feeds[0] ?? 'market',
    description: (feed) =>
      isComplete && !feeds.includes(feed)
        ? `nothing: ${printable(file)} contains no frame of this feed`
        : `its frames in ${printable(file)}, ${speedWords(speed)}, from when the first client connects`,
  };
};

interface FoundFeeds {
  /** In the order of their first frames. */
  readonly feeds: readonly Feed[];
  /** Whether the search ended before the limit of `searchedBytes`: at the end of the recording, or when both feeds were found. */
  readonly isComplete: boolean;
}

const feedsIn = (file: string): Promise<FoundFeeds> =>
  lastValueFrom(
    replay$(file, { speed: Infinity }).pipe(
      scan<Replayed, FoundFeeds>(
        ({ feeds }, event) => ({
          feeds: event.type === 'frame' && !feeds.includes(event.feed) ? [...feeds, event.feed] : feeds,
          isComplete: event.offset < searchedBytes,
        }),
        { feeds: [], isComplete: true },
      ),
      takeWhile(({ feeds, isComplete }) => isComplete && feeds.length < 2, true),
    ),
    { defaultValue: { feeds: [], isComplete: true } },
  );

/** Emits the offset of the first frame of a feed, so that the replay does not wait for the time before it. Emits nothing if there is no frame. */
const startOf$ = (file: string, feed: Feed): Observable<number> =>
  replay$(file, { speed: Infinity }).pipe(
    scan((before, event) => ({ event, offset: before.event?.offset ?? 0 }), {
      event: undefined as Replayed | undefined,
      offset: 0,
    }),
    filter(({ event }) => event?.type === 'frame' && event.feed === feed),
    map(({ offset }) => offset),
    take(1),
  );

const speedWords = (speed: number): string => {
  if (speed === 1) return 'as recorded';
  return speed === Infinity ? 'as fast as possible' : `${speed} times as fast`;
};
