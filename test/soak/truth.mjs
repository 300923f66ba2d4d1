// @ts-check
/** What came over the wire, by the number that each frame carries. */
export class Truth {
  frames = 0;
  /** Frames that never came: the numbers were left out. */
  missing = 0;
  /** Frames that hold the needle, by the window in which they were read. @type {Map<number, number>} */
  kept = new Map();
  /** How often numbers were left out. */
  holes = 0;
  /** When the feed was open for the first time, in epoch ms. */
  openedAt = Infinity;
  /** When the connection was down, in epoch ms. @type {{ from: number, to: number }} */
  outage = { from: Infinity, to: -Infinity };
  /** What ended each attempt. @type {string[]} */
  disconnects = [];
  #last = 0;

  /**
   * @param {string} needle
   * @param {number} windowMs
   */
  constructor(needle, windowMs) {
    this.needle = Buffer.from(needle);
    this.windowMs = windowMs;
  }

  /** @param {import('rx-trade-feed').FeedEvent} event */
  see(event) {
    if (event.type === 'frame') this.#count(event);
    if (event.type === 'opened') {
      this.openedAt = Math.min(this.openedAt, event.at);
      if (this.disconnects.length > 0) this.outage.to = event.at;
    }
    if (event.type !== 'disconnected') return;
    this.disconnects.push(event.failure.code);
    if (event.failure.stage === 'stream') this.outage.from = event.failure.endedAt;
  }

  /** @param {import('rx-trade-feed').Frame} frame */
  #count({ data, receivedAt }) {
    const number = numberOf(data);
    if (this.#last > 0 && number !== this.#last + 1) {
      this.missing += number - this.#last - 1;
      this.holes += 1;
    }
    this.#last = number;
    this.frames += 1;
    if (!data.includes(this.needle)) return;
    const start = receivedAt - (receivedAt % this.windowMs);
    this.kept.set(start, (this.kept.get(start) ?? 0) + 1);
  }
}

const start = '{"batch":'.length;

/** @param {Buffer} data `{"batch":12,…` */
const numberOf = (data) => {
  let number = 0;
  for (let n = start; data[n] !== 0x2c; n += 1) number = number * 10 + (data[n] ?? 0) - 0x30;
  return number;
};
