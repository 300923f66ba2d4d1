import { filter, lastValueFrom, map, type Observable, scan, switchMap, take, takeWhile } from 'rxjs';
import { type Feed, type Replayed, replay$, type ReplayedFrame } from '../../index.js';
import { CliError } from '../cli-error.js';
import { ExitCode } from '../exit-code.js';
import { printable } from '../../protocol/printable.js';

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
  /** The payloads of a feed, with their recorded spacing, the first one when its first client has connected. */
  readonly payloads: (feed: Feed) => Observable<string | Uint8Array>;
  /** The feed that its first frame is of. */
  readonly feed: Feed;
  readonly description: (feed: Feed) => string;
}

/** How far it looks into a recording for the feeds that it holds, in bytes. */
const lookBytes = 16 * 1024 * 1024;

/**
 * Opens a recording to serve.
 *
 * @throws RecordingError when it cannot be read
 */
export const openReplay = async ({ file, speed, firstClient }: ReplaySourceOptions): Promise<ReplaySource> => {
  const { feeds, isWhole } = await feedsIn(file);
  if (isWhole && feeds.length === 0) throw new CliError(ExitCode.local, 'The recording of --replay holds no frame.');
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
      isWhole && !feeds.includes(feed)
        ? `nothing: no frame of it is in ${printable(file)}`
        : `its frames of ${printable(file)}, ${paceWords(speed)}, the first one when its first client connects`,
  };
};

interface FeedsSeen {
  /** In the order of their first frames. */
  readonly feeds: readonly Feed[];
  /** Whether that is all of them. */
  readonly isWhole: boolean;
}

const feedsIn = (file: string): Promise<FeedsSeen> =>
  lastValueFrom(
    replay$(file, { speed: Infinity }).pipe(
      scan<Replayed, FeedsSeen>(
        ({ feeds }, event) => ({
          feeds: event.type === 'frame' && !feeds.includes(event.feed) ? [...feeds, event.feed] : feeds,
          isWhole: event.offset < lookBytes,
        }),
        { feeds: [], isWhole: true },
      ),
      takeWhile(({ feeds, isWhole }) => isWhole && feeds.length < 2, true),
    ),
    { defaultValue: { feeds: [], isWhole: true } },
  );

/** Emits where the first frame of a feed is, so that what was recorded before it is not waited for; nothing when there is none. */
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

const paceWords = (speed: number): string => {
  if (speed === 1) return 'as recorded';
  return speed === Infinity ? 'as fast as possible' : `${speed} times as fast`;
};
