// A line in a stream of Redis.
//
// In: messages, with their places. Out: the same for a minute, and which of them the stream has.
// Never: a message that doesn't follow the last one, or one of a replaced owner in the channel.
import type { Redis } from 'ioredis';
import { createHash } from 'node:crypto';
import { firstValueFrom, from, throwError, timeout } from 'rxjs';
import { firstWhere, lineLimits, type LineRefusal, type LineSpec, retention, StoreAway } from '../log/line-store.js';
import { type Page, type Refused, StoredLine } from '../log/stored-line.js';
import type { Head } from '../protocol/place.js';
import { isError } from '../protocol/type-guards.js';

interface LineParts extends LineSpec {
  readonly commands: Redis;
  readonly key: string;
  readonly channel: string;
}

/**
 * Stores a message if the newest one is the expected one, and publishes it. That of a replaced owner isn't published;
 * others are, even if there's no memory to store them. Returns the id, or why it isn't stored. Another program may have
 * added an entry after the newest message, and it was removed: then Redis refuses lower ids.
 */
const script = `
local expected, id, isNew, oldest, channel, bytes = unpack(ARGV)
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local last = newest and newest[1] or ''
if last == id then return id end
local generation, own = tonumber(last:match('^%d+') or 0), tonumber(id:match('^%d+'))
local result = { (generation == 0 or generation == own) and 'away' or 'fenced', 'The newest message is ' .. last .. ' instead of ' .. expected }
if last == expected then
  if isNew == '1' then redis.call('DEL', KEYS[1]) end
  if oldest ~= '' then redis.call('XTRIM', KEYS[1], 'MINID', '~', oldest) end
  local added = redis.pcall('XADD', KEYS[1], id, 'b', bytes)
  if added.err and added.err:find('equal or smaller') and last ~= '' then
    redis.call('XSETID', KEYS[1], last)
    added = redis.pcall('XADD', KEYS[1], id, 'b', bytes)
  end
  result = added.err and { added.err:find('OOM') and 'full' or 'away', added.err } or id
elseif generation > own then return result end
if channel ~= '' then redis.call('PUBLISH', channel, bytes) end
return result
`;
const digest = createHash('sha1').update(script).digest('hex');

const pageSize = 256;
/** The parts of a large record have the same offset, but each needs an id. */
const idsPerOffset = 1_000;

interface Entry {
  readonly id: string;
  readonly bytes: Buffer;
  readonly head: Head | undefined;
}

interface Message extends Entry {
  readonly head: Head;
}

interface Found {
  readonly key: string;
  readonly head: Head;
}

/** From the entry `end` on, the newest message was `id`; `undefined`: there was none. */
interface Passed {
  readonly end: string;
  readonly id: string | undefined;
}

interface First {
  readonly message?: Message | undefined;
  readonly others: readonly string[];
}

type Range = 'xrangeBuffer' | 'xrevrangeBuffer';

/** Stores a line in a stream. The ids are `<generation>-<1000 * offset>`, so Redis itself refuses older ones, too. */
export class RedisLine extends StoredLine<Message | undefined, string> {
  readonly #parts: LineParts;
  /** The id of the last message. */
  #id = '';
  #oldestKept: ReturnType<typeof retention<string>>;
  #passed: Passed | undefined;

  constructor(parts: LineParts) {
    super();
    this.#parts = parts;
    this.#oldestKept = retention(parts);
  }

  protected get isConnected(): boolean {
    return this.#parts.commands.status === 'ready';
  }

  protected async newest(): Promise<Message | undefined> {
    await this.#ask(({ commands }) => commands.script('LOAD', script));
    const { message, others } = await this.#first('xrevrangeBuffer', '+', '-');
    // The next message couldn't follow what another program has added.
    if (others.length > 0)
      await this.#ask(({ commands, key }) => (message ? commands.xdel(key, ...others) : commands.del(key)));
    if (message !== undefined) await this.#trim(message.head);
    return message;
  }

  protected follow(newest: Message | undefined): void {
    this.#id = newest?.id ?? '';
  }

  protected async store(head: Head, bytes: Uint8Array, isAgain: boolean): Promise<Refused | undefined> {
    const { commands, key, channel } = this.#parts;
    const { gen, line, offset } = head;
    const expected = this.#id;
    // It may have a lower generation, which only an empty stream takes.
    const isNew = this.sent !== undefined && this.sent.line !== line;
    if (isNew) this.#oldestKept = retention(this.#parts);
    const following = !isNew && this.sent?.gen === gen ? Number(expected.split('-')[1]) + 1 : 0;
    this.#id = `${gen}-${Math.max(offset * idsPerOffset, following)}`;
    const oldest = this.#oldestKept(this.#id, bytes.byteLength) ?? '';
    const names = [expected, this.#id, isNew ? '1' : '0', oldest, isAgain ? '' : channel];
    try {
      const answer = await commands.evalsha(digest, 1, key, ...names, asBuffer(bytes));
      const result = answer as string | readonly [LineRefusal, string];
      return typeof result === 'string' ? undefined : { refused: result[0], error: refusalOf(result[1]) };
    } catch (error) {
      // The script didn't run, so it hasn't published the message.
      if (!isAgain && isError(error) && error.name === 'ReplyError') void this.publish(bytes, 'away');
      throw error;
    }
  }

  protected async publish(bytes: Uint8Array, refused: LineRefusal): Promise<unknown> {
    const { commands, channel } = this.#parts;
    // The refusal has been reported, and what hasn't been published is in the writer's memory.
    return refused === 'fenced' ? undefined : commands.publish(channel, asBuffer(bytes)).catch(() => undefined);
  }

  /** Searches the generations, from the newest. Each begins at the offset that its heads say. */
  protected async find(isFound: (head: Head) => boolean, upTo?: Message): Promise<Found | undefined> {
    const last = upTo ?? (await this.#last());
    if (last === undefined) return undefined;
    const { gen, began, offset } = last.head;
    const next = async (from: number) => {
      const { message } = await this.#first('xrangeBuffer', `${gen}-${from * idsPerOffset}`, `${gen}`);
      return message && { ...message, key: message.head.offset };
    };
    const found = (await firstWhere([began, offset + 1], next, isFound)) ?? (isFound(last.head) ? last : undefined);
    return found && this.#back({ key: found.id, head: found.head }, isFound);
  }

  /** Others at the same offset, which have no records, may come before, or those of the generation before. */
  async #back(found: Found, isFound: (head: Head) => boolean): Promise<Found> {
    const { message: before } = await this.#first('xrevrangeBuffer', `(${found.key}`, '-');
    if (before?.head.line !== found.head.line || !isFound(before.head)) return found;
    const isOfOther = before.head.gen !== found.head.gen;
    const earlier = isOfOther ? await this.find(isFound, before) : undefined;
    return earlier ?? this.#back({ key: before.id, head: before.head }, isFound);
  }

  protected async *pages(from: string): AsyncIterable<Page<string>> {
    for (let [start, isOver] = [from, false]; !isOver;) {
      const page: readonly Entry[] = await this.#entries('xrangeBuffer', start, '+', pageSize);
      isOver = page.length < pageSize;
      // The id after the last one.
      if (page.length > 0) start = `(${page.at(-1)?.id}`;
      yield { messages: page.map(({ bytes }) => bytes), next: start };
    }
  }

  async last(): Promise<Head | undefined> {
    return (await this.#last())?.head;
  }

  async exists(): Promise<boolean> {
    return (await this.#ask(({ commands, key }) => commands.exists(key))) > 0;
  }

  protected async bytes(): Promise<number> {
    return (await this.#ask(({ commands, key }) => commands.memory('USAGE', key))) ?? 0;
  }

  protected headOf(bytes: Uint8Array): Head | undefined {
    return this.#parts.headOf(bytes);
  }

  /** Removes what writers before this one have left beyond the limits: nobody has their marks. */
  async #trim({ at }: Head): Promise<void> {
    const { maxBytes = Infinity, maxAgeMs = Infinity } = this.#parts;
    const bytes = maxBytes === Infinity ? 0 : await this.bytes();
    const share = Math.min(1, maxBytes / bytes);
    if (share < 1)
      await this.#ask(async ({ commands, key }) =>
        commands.xtrim(key, 'MAXLEN', '~', Math.ceil((await commands.xlen(key)) * share)),
      );
    const kept = maxAgeMs === Infinity ? undefined : await this.find((head) => head.at >= at - maxAgeMs);
    if (kept !== undefined) await this.#ask(({ commands, key }) => commands.xtrim(key, 'MINID', '~', kept.key));
  }

  /** Returns the newest message. What another program has added after it is passed once. */
  async #last(): Promise<Message | undefined> {
    const { message, others } = await this.#first('xrevrangeBuffer', '+', '-', this.#passed);
    const end = others[0] ?? message?.id;
    this.#passed = end === undefined ? undefined : { end, id: message?.id };
    return message;
  }

  /**
   * Returns the first message of a range, and the ids before it of entries that another program has added, without those
   * that were passed.
   */
  async #first(command: Range, from: string, to: string, passed?: Passed): Promise<First> {
    const others: string[] = [];
    for (let [start, count] = [from, 1]; ; count = pageSize) {
      const page = await this.#entries(command, start, to, count);
      for (const { id, bytes, head } of page) {
        if (head !== undefined) return { message: { id, bytes, head }, others };
        others.push(id);
        if (id !== passed?.end) continue;
        // While that entry is there, Redis adds none before it.
        const { message } = passed.id === undefined ? {} : await this.#first(command, passed.id, to);
        return { message, others };
      }
      if (page.length < count) return { message: undefined, others };
      start = `(${others.at(-1)}`;
    }
  }

  async #entries(command: Range, from: string, to: string, count: number): Promise<readonly Entry[]> {
    const entries = await this.#ask(({ commands, key }) => commands[command](key, from, to, 'COUNT', count));
    const { headOf } = this.#parts;
    return entries.map(([id, [, bytes = Buffer.alloc(0)]]) => ({ id: id.toString(), bytes, head: headOf(bytes) }));
  }

  /** Rejects if the server is away or hangs. */
  async #ask<T>(call: (parts: LineParts) => Promise<T>): Promise<T> {
    if (!this.isConnected) throw new StoreAway('Redis is disconnected');
    return answered(call(this.#parts));
  }
}

/** Rejects if there's no answer. The client would wait for it without a limit. */
export const answered = <T>(answer: Promise<T>): Promise<T> => {
  const { requestMs } = lineLimits;
  const silent = () => throwError(() => new StoreAway(`Redis hasn't answered for ${requestMs} ms`));
  return firstValueFrom(from(answer).pipe(timeout({ first: requestMs, with: silent })));
};

/** Another message at the end is no refusal: it shows where the line ends. */
const refusalOf = (text: string): Error =>
  text.startsWith('The newest message is')
    ? new StoreAway(text)
    : Object.assign(new Error(text), { name: 'ReplyError' }); // Like the client's own.

export const asBuffer = (data: Uint8Array): Buffer => Buffer.from(data.buffer, data.byteOffset, data.byteLength);
