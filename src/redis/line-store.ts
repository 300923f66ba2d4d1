// A line in a stream of Redis.
//
// In: messages, with their places. Out: the same for a minute, and which of them the stream has.
// Never: a message that doesn't follow the last one, or one of a replaced owner in the channel.
import type { Redis } from 'ioredis';
import { createHash } from 'node:crypto';
import { firstValueFrom, from, Subject, timeout } from 'rxjs';
import { LineAppender } from '../log/line-appender.js';
import type { HeadOf, LineStore, LineRefusal, Stored } from '../log/line-store.js';
import { extentOf, firstWhere, lineLimits, reaches } from '../log/line-store.js';
import type { Head } from '../protocol/place.js';
import { isError } from '../protocol/type-guards.js';

interface LineParts {
  readonly commands: Redis;
  readonly key: string;
  readonly channel: string;
  readonly headOf: HeadOf;
}

/**
 * Stores a message if the newest one is the expected one, and publishes it. That of a replaced owner isn't published;
 * others are, even if there's no memory to store them. Returns the id, or why it isn't stored.
 */
const script = `
local expected, id, isNew, oldest, channel, bytes = unpack(ARGV)
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local last = newest and newest[1] or ''
if last == id then return id end
local result = { last == '' and 'away' or 'fenced', 'The newest message is ' .. last .. ' instead of ' .. expected }
if last == expected then
  if isNew == '1' then redis.call('DEL', KEYS[1]) end
  if oldest ~= '' then redis.call('XTRIM', KEYS[1], 'MINID', '~', oldest) end
  local added = redis.pcall('XADD', KEYS[1], id, 'b', bytes)
  result = added.err and { added.err:find('OOM') and 'full' or 'away', added.err } or id
elseif tonumber(last:match('^%d+') or 0) > tonumber(id:match('^%d+')) then return result end
if channel ~= '' then redis.call('PUBLISH', channel, bytes) end
return result
`;
const digest = createHash('sha1').update(script).digest('hex');

const { requestMs, answerMs } = lineLimits;
const pageSize = 256;
/** The parts of a large record have the same offset, but each needs an id. */
const idsPerOffset = 1_000;
/** Nothing more is sent to a server that leaves so much unanswered: it hangs. */
const maxUnansweredBytes = 32 * 1024 * 1024;

/** Stores a line in a stream. The ids are `<generation>-<1000 * offset>`, so Redis itself refuses older ones, too. */
export const redisLine = (parts: LineParts): LineStore => {
  const { ask, range, newest, find } = streamOf(parts);
  const stored$ = new Subject<Stored>();
  const oldestKept = retention();
  let appender = new RedisAppender(parts, stored$, oldestKept);
  return {
    stored$: stored$.asObservable(),
    end: async () => {
      await ask(({ commands }) => commands.script('LOAD', script));
      const last = await newest();
      appender.close();
      appender = new RedisAppender(parts, stored$, oldestKept, last);
      return last?.head;
    },
    append: (head, bytes, isAgain = false) => appender.append(head, bytes, isAgain),
    read: async function* (offset, signal) {
      const end = (await newest())?.id ?? '+';
      let next = (await find((head) => reaches(head, offset)))?.id;
      while (next !== undefined) {
        const page = await range(next, end, pageSize);
        for (const { bytes } of page) {
          if (signal.aborted) return;
          yield bytes;
        }
        const last = page[pageSize - 1];
        next = last && `(${last.id}`;
      }
    },
    since: async (at) => (await find((head) => head.at >= at))?.head.offset,
    extent: async () => {
      const bytes = await ask(({ commands, key }) => commands.memory('USAGE', key));
      const [oldest] = await range('-', '+', 1);
      return extentOf(oldest?.head, (await newest())?.head, bytes ?? 0);
    },
  };
};

interface Entry {
  readonly id: string;
  readonly bytes: Buffer;
  readonly head: Head | undefined;
}

const streamOf = (parts: LineParts) => {
  /** Rejects if the server is away or hangs. The client would wait for it without a limit. */
  const ask = <T>(call: (parts: LineParts) => Promise<T>): Promise<T> =>
    parts.commands.status === 'ready'
      ? firstValueFrom(from(call(parts)).pipe(timeout(requestMs)))
      : Promise.reject(new Error('Redis is disconnected'));
  const entryOf = ([id, [, bytes = Buffer.alloc(0)]]: readonly [Buffer, readonly Buffer[]]): Entry => ({
    ...{ id: id.toString(), bytes, head: parts.headOf(bytes) },
  });
  const range = async (start: string, end: string, count: number): Promise<readonly Entry[]> =>
    (await ask(({ commands, key }) => commands.xrangeBuffer(key, start, end, 'COUNT', count))).map(entryOf);
  const newest = async (upTo = '+'): Promise<Entry | undefined> =>
    (await ask(({ commands, key }) => commands.xrevrangeBuffer(key, upTo, '-', 'COUNT', 1))).map(entryOf)[0];

  /** Searches the generations, from the newest. Each begins at the offset that its heads say. */
  const find = async (
    isFound: (head: Head) => boolean,
    upTo = '+',
  ): Promise<{ id: string; head: Head } | undefined> => {
    const { head: last } = (await newest(upTo)) ?? {};
    if (last === undefined) return undefined;
    const { gen, began, offset } = last;
    const next = async (from: number) => {
      const [{ id, head } = { id: '', head: undefined }] = await range(`${gen}-${from * idsPerOffset}`, `${gen}`, 1);
      return head && { id, head, key: head.offset };
    };
    const found = await firstWhere([began, offset + 1], next, isFound);
    const isFirst = found !== undefined && found.key <= began;
    return (isFirst ? await find(isFound, `(${gen}-0`) : undefined) ?? found;
  };
  return { ask, range, newest, find };
};

class RedisAppender extends LineAppender {
  readonly #parts: LineParts;
  readonly #oldestKept: ReturnType<typeof retention>;
  /** The id of the last message. */
  #id: string;
  #unansweredBytes = 0;
  #answers = 0;
  /** Runs while an answer is missing. */
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: LineParts, stored$: Subject<Stored>, oldestKept: ReturnType<typeof retention>, last?: Entry) {
    super(last?.head, stored$);
    this.#parts = parts;
    this.#oldestKept = oldestKept;
    this.#id = last?.id ?? '';
  }

  protected get isConnected(): boolean {
    return this.#parts.commands.status === 'ready' && this.#unansweredBytes < maxUnansweredBytes;
  }

  protected store(head: Head, bytes: Uint8Array, isAgain: boolean): void {
    const { commands, key, channel } = this.#parts;
    const { gen, line, offset } = head;
    const expected = this.#id;
    // It may have a lower generation, which only an empty stream takes.
    const isNew = this.last !== undefined && this.last.line !== line;
    const following = !isNew && this.last?.gen === gen ? Number(expected.split('-')[1]) + 1 : 0;
    this.#id = `${gen}-${Math.max(offset * idsPerOffset, following)}`;
    const oldest = this.#oldestKept(this.#id, bytes.byteLength, isNew);
    const names = [expected, this.#id, isNew ? '1' : '0', oldest, isAgain ? '' : channel];
    this.#send(bytes, (data) => commands.evalsha(digest, 1, key, ...names, data))
      .then((result) => {
        const [refused, text] = Array.isArray(result) ? (result as [LineRefusal, string]) : [];
        if (refused === undefined) this.stored(head);
        else this.refuse(refused, new Error(text));
      })
      .catch((error: unknown) => {
        this.refuse('away', error);
        // The script didn't run, so it hasn't published the message.
        if (!isAgain && isError(error) && error.name === 'ReplyError') this.publish(bytes, 'away');
      });
  }

  protected publish(bytes: Uint8Array, refused: LineRefusal): void {
    const { commands, channel } = this.#parts;
    // The refusal has been reported, and what hasn't been published is in the writer's memory.
    if (refused !== 'fenced') this.#send(bytes, (data) => commands.publish(channel, data)).catch(() => undefined);
  }

  #send<T>(bytes: Uint8Array, call: (data: Buffer) => Promise<T>): Promise<T> {
    this.#timer ??= setTimeout(() => this.#silent(this.#answers), answerMs);
    this.#unansweredBytes += bytes.byteLength;
    return call(asBuffer(bytes)).finally(() => {
      this.#answers += 1;
      this.#unansweredBytes -= bytes.byteLength;
      this.#timer?.refresh();
      if (this.#unansweredBytes > 0) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    });
  }

  #silent(answers: number): void {
    const refuse = (): void => this.refuse('away', new Error(`Redis hasn't answered for ${answerMs} ms`));
    // After a blocked event loop, answers may wait to be read.
    setImmediate(() => answers === this.#answers && refuse());
  }
}

/**
 * Returns a function that says from which id on a stream must keep messages, if that has changed. MINID keeps a minute
 * at any rate; MAXLEN would keep hours of a quiet feed, and seconds of a busy one. A new owner doesn't know the ages of
 * the messages before its own, so it keeps them for another minute.
 */
const retention = () => {
  const marks: { readonly id: string; readonly at: number; readonly before: number }[] = [];
  let total = 0;
  return (id: string, bytes: number, isNew: boolean): string => {
    const at = performance.now();
    if (isNew) marks.length = 0;
    const newest = marks.at(-1);
    if (newest === undefined || at - newest.at >= 1_000 || total - newest.before >= 1024 * 1024)
      marks.push({ id, at, before: total });
    total += bytes;
    const { maxAgeMs, maxBytes } = lineLimits;
    const kept = marks.findIndex((mark) => at - mark.at <= maxAgeMs && total - mark.before <= maxBytes);
    return marks.splice(0, kept).at(-1)?.id ?? '';
  };
};

export const asBuffer = (data: Uint8Array): Buffer => Buffer.from(data.buffer, data.byteOffset, data.byteLength);
