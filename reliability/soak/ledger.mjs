// Every frame accounted for, by the number that it carries.

/** The books of one subscription: what came, what is missing, and whether a gap told of it. */
export class Ledger {
  received = 0;
  /** Numbers that were left out right behind a gap. */
  toldMissing = 0;
  gaps = 0;
  /** What must never be: `{ rule, number }`. The first of them are kept. */
  violations = [];
  broken = 0;
  first = 0;
  last = 0;
  #isGapOpen = false;

  /** @param {{ type: string, data?: Buffer }} event of `tradeFeedEvents$` */
  see(event) {
    if (event.type === 'gap') {
      this.gaps += 1;
      this.#isGapOpen = true;
    }
    if (event.type === 'frame') this.frame(numberOf(event.data));
  }

  /** @param {number} number */
  frame(number) {
    if (this.received === 0) this.first = number;
    else if (number <= this.last) this.#violate(number === this.last ? 'twice' : 'out of order', number);
    else if (number > this.last + 1) {
      if (!this.#isGapOpen) this.#violate('missing without a gap', number);
      else this.toldMissing += number - this.last - 1;
    }
    this.#isGapOpen = false;
    this.received += 1;
    this.last = Math.max(this.last, number);
  }

  /** Whether what was sent is what came and what gaps told of: from the first number on, as far as the last. */
  isBalanced(sent, from = 1) {
    return (
      this.broken === 0 &&
      this.first === from &&
      this.last === sent &&
      this.received + this.toldMissing === sent - from + 1
    );
  }

  #violate(rule, number) {
    this.broken += 1;
    if (this.violations.length < 10) this.violations.push({ rule, number });
  }
}

const start = '{"batch":'.length;

/** Reads `{"batch":12,…` */
export const numberOf = (data) => {
  let number = 0;
  for (let n = start; data[n] !== 0x2c; n += 1) number = number * 10 + (data[n] ?? 0) - 0x30;
  return number;
};
