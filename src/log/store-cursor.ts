// The cursors of consumers of a log in a store: one key each, which only its newest process can change.
import { randomUUID } from 'node:crypto';
import type { Place } from '../protocol/place.js';
import { type Cursor, isPlace } from './consume.js';
import { placeOf } from './lines.js';
import { LogError } from './log-error.js';
import { persisted, refusedBy, type StoredLog, takeRole } from './stored-log.js';

interface Entry {
  readonly position: Place | undefined;
  readonly revision: number | undefined;
  readonly text: string | undefined;
}

/** A consumer that hasn't committed yet. */
const isNew = (stored: unknown): boolean => {
  const fields = Object(stored) as object;
  return 'owner' in fields && !('offset' in fields);
};

const readCursor = async (log: StoredLog, consumer: string): Promise<Entry> => {
  const key = log.cursorKey(consumer);
  const { value: text, revision } = (await log.engine.read(key)) ?? {};
  if (text === undefined) return { position: undefined, revision, text };
  try {
    const stored: unknown = JSON.parse(text);
    if (isPlace(stored)) return { position: placeOf(stored), revision, text };
    if (isNew(stored)) return { position: undefined, revision, text };
  } catch {
    // Not JSON: the error below says so.
  }
  // Never `earliest`: the consumer would do all its work again.
  const advice = 'Correct its `offset`, or remove it to begin again.';
  throw new LogError('log-corrupt', `The cursor ${key} of the log ${log.path} is damaged.`, { path: key, advice });
};

/** Reads the cursor of a consumer, even while it runs. */
export const committedInStore = async (log: StoredLog, consumer: string): Promise<Place | undefined> => {
  try {
    return (await readCursor(log, consumer)).position;
  } catch (error) {
    throw refusedBy(log, 'read', error);
  }
};

/** @throws LogError with the code `consumer-in-use`, `log-corrupt` or `log-write-failed` */
export const openStoreCursor = async (log: StoredLog, consumer: string): Promise<Cursor> => {
  const { path, engine } = log;
  const inUse = (): LogError =>
    new LogError('consumer-in-use', `The consumer ${consumer} of the log ${path} runs already.`, { path });
  let isClosed = false;
  const persist = <T>(request: () => Promise<T>): Promise<T> => persisted(log, request, () => isClosed);
  const release = await persist(() => takeRole(log, `consumer.${consumer}`));
  if (release === undefined) throw inUse();
  const owner = randomUUID();
  let known: Entry | undefined;
  const set = async (next: Place | undefined): Promise<void> => {
    const text = JSON.stringify({ ...next, owner });
    const revision = await persist(() => engine.compareAndSet(log.cursorKey(consumer), text, known?.revision));
    known = { position: next, revision, text };
    if (revision !== undefined) return;
    const stored = await persist(() => readCursor(log, consumer));
    // Otherwise only the confirmation was lost.
    if (stored.text !== text) throw inUse();
    known = stored;
  };
  try {
    known = await persist(() => readCursor(log, consumer));
    const { position } = known;
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
