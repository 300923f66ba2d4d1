// A line in a stream of Redis.
//
// In: messages, with their places. Out: the same for a minute, and which of them the stream has.
// Never: a message that doesn't follow the last one, or one of a replaced owner in the channel.
import type { Redis } from 'ioredis';
import { createHash } from 'node:crypto';
import { firstValueFrom, from, throwError, timeout } from 'rxjs';
import { firstWhere, type HeadOf, lineLimits, type LineRefusal, retention } from '../log/line-store.js';
import { type Refused, StoredLine } from '../log/stored-line.js';
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
local generation, own = tonumber(last:match('^%d+') or 0), tonumber(id:match('^%d+'))
local result = { (generation == 0 or generation == own) and 'away' or 'fenced', 'The newest message is ' .. last .. ' instead of ' .. expected }
if last == expected then
  if isNew == '1' then redis.call('DEL', KEYS[1]) end
  if oldest ~= '' then redis.call('XTRIM', KEYS[1], 'MINID', '~', oldest) end
  local added = redis.pcall('XADD', KEYS[1], id, 'b', bytes)
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

type Found = Entry & { readonly head: Head };
type Range = 'xrangeBuffer' | 'xrevrangeBuffer';

/** Stores a line in a stream. The ids are `<generation>-<1000 * offset>`, so Redis itself refuses older ones, too. */
export class RedisLine extends StoredLine<Entry | undefined, Found> {
  readonly #parts: LineParts;
  /** The id of the last message. */
  #id = '';
  #oldestKept = retention<string>();

  constructor(parts: LineParts) {
    super();
    this.#parts = parts;
  }

  protected get isConnected(): boolean {
    return this.#parts.commands.status === 'ready';
  }

  protected async newest(): Promise<Entry | undefined> {
    await this.#ask(({ commands }) => commands.script('LOAD', script));
    return (await this.#entries('xrevrangeBuffer', '+', '-', 1))[0];
  }

  protected follow(newest: Entry | undefined): void {
    this.#id = newest?.id ?? '';
  }

  protected async store(head: Head, bytes: Uint8Array, isAgain: boolean): Promise<Refused | undefined> {
    const { commands, key, channel } = this.#parts;
    const { gen, line, offset } = head;
    const expected = this.#id;
    // It may have a lower generation, which only an empty stream takes.
    const isNew = this.last !== undefined && this.last.line !== line;
    if (isNew) this.#oldestKept = retention<string>();
    const following = !isNew && this.last?.gen === gen ? Number(expected.split('-')[1]) + 1 : 0;
    this.#id = `${gen}-${Math.max(offset * idsPerOffset, following)}`;
    const oldest = this.#oldestKept(this.#id, bytes.byteLength) ?? '';
    const names = [expected, this.#id, isNew ? '1' : '0', oldest, isAgain ? '' : channel];
    try {
      const answer = await commands.evalsha(digest, 1, key, ...names, asBuffer(bytes));
      const result = answer as string | readonly [LineRefusal, string];
      return typeof result === 'string' ? undefined : { refused: result[0], error: new Error(result[1]) };
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
  protected async find(isFound: (head: Head) => boolean, upTo = '+'): Promise<Found | undefined> {
    const [last] = await this.#entries('xrevrangeBuffer', upTo, '-', 1);
    if (last?.head === undefined) return undefined;
    const { gen, began, offset } = last.head;
    const next = async (from: number) => {
      const [entry] = await this.#entries('xrangeBuffer', `${gen}-${from * idsPerOffset}`, `${gen}`, 1);
      return entry?.head && { ...entry, head: entry.head, key: entry.head.offset };
    };
    const found = await firstWhere([began, offset + 1], next, isFound);
    const isFirst = found !== undefined && found.key <= began;
    return (isFirst ? await this.find(isFound, `(${gen}-0`) : undefined) ?? found;
  }

  protected async *pages({ id }: Found): AsyncIterable<readonly Uint8Array[]> {
    for (let from: string | undefined = id; from !== undefined;) {
      const page: readonly Entry[] = await this.#entries('xrangeBuffer', from, '+', pageSize);
      yield page.map(({ bytes }) => bytes);
      from = page.length < pageSize ? undefined : `(${page.at(-1)?.id}`;
    }
  }

  protected async bytes(): Promise<number> {
    return (await this.#ask(({ commands, key }) => commands.memory('USAGE', key))) ?? 0;
  }

  async #entries(command: Range, from: string, to: string, count: number): Promise<readonly Entry[]> {
    const entries = await this.#ask(({ commands, key }) => commands[command](key, from, to, 'COUNT', count));
    const { headOf } = this.#parts;
    return entries.map(([id, [, bytes = Buffer.alloc(0)]]) => ({ id: id.toString(), bytes, head: headOf(bytes) }));
  }

  /** Rejects if the server is away or hangs. The client would wait for it without a limit. */
  async #ask<T>(call: (parts: LineParts) => Promise<T>): Promise<T> {
    if (!this.isConnected) throw new Error('Redis is disconnected');
    const { requestMs } = lineLimits;
    const silent = () => throwError(() => new Error(`Redis hasn't answered for ${requestMs} ms`));
    return firstValueFrom(from(call(this.#parts)).pipe(timeout({ first: requestMs, with: silent })));
  }
}

export const asBuffer = (data: Uint8Array): Buffer => Buffer.from(data.buffer, data.byteOffset, data.byteLength);
