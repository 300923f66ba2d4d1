// The cursors of consumers of a log in a store: one key each, which only its newest process can change.
import { randomUUID } from 'node:crypto';
import type { Place } from '../protocol/place.js';
import { committedPlace, type Cursor } from './consume.js';
import { jsonIn } from './lines.js';
import { consumerInUse } from './log-error.js';
import { asked, persisted, type StoredLog, takeRole } from './stored-log.js';

const readCursor = async (log: StoredLog, consumer: string) => {
  const key = log.cursorKey(consumer);
  const { value: text, revision } = (await log.engine.read(key)) ?? {};
  const isThere = text !== undefined;
  const position = isThere ? committedPlace(jsonIn(text), 'owner', key, `${key} of the log ${log.path}`) : undefined;
  return { position, revision, text };
};

/** Reads the cursor of a consumer, even while it runs. */
export const committedInStore = async (log: StoredLog, consumer: string): Promise<Place | undefined> =>
  (await asked(log, () => readCursor(log, consumer))).position;

/** @throws LogError with the code `consumer-in-use`, `log-corrupt` or `log-write-failed` */
export const openStoreCursor = async (log: StoredLog, consumer: string): Promise<Cursor> => {
  const { path, engine } = log;
  let isClosed = false;
  const persist = <T>(request: () => Promise<T>): Promise<T> => persisted(log, request, () => isClosed);
  const release = await persist(() => takeRole(log, `consumer.${consumer}`));
  if (release === undefined) throw consumerInUse(consumer, path);
  const owner = randomUUID();
  let revision: number | undefined;
  const set = async (next: Place | undefined): Promise<void> => {
    const text = JSON.stringify({ ...next, owner });
    revision = await persist(() => engine.compareAndSet(log.cursorKey(consumer), text, revision));
    if (revision !== undefined) return;
    const stored = await persist(() => readCursor(log, consumer));
    // Otherwise only the confirmation was lost.
    if (stored.text !== text) throw consumerInUse(consumer, path);
    revision = stored.revision;
  };
  try {
    const { position, ...known } = await persist(() => readCursor(log, consumer));
    revision = known.revision;
    // From now on, a suspended process that had this name before can't commit.
    await set(position);
    let committing: Promise<void> = Promise.resolve();
    const close = (): void => {
      isClosed = true;
      release();
    };
    return { position, commit: (next) => (committing = committing.then(() => set(next))), close };
  } catch (error) {
    release();
    throw error;
  }
};
