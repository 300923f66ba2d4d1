// Accounts for every frame by the number in its payload.

/** The account of one subscription: the frames received, the frames missing, and whether a gap reported them. */
export class FrameAccount {
  received = 0;
  /** Numbers that are missing directly after a gap. */
  missedInGaps = 0;
  gaps = 0;
  /** The first ten violations: `{ rule, number }`. */
  violations = [];
  violationCount = 0;
  #first;
  last;
  #isGapOpen = false;

  /** @param {number} [first] the first number that is sent; if the subscription may start later, its first frame decides */
  constructor(first) {
    this.#first = first;
    this.last = first === undefined ? 0 : first - 1;
  }

  /** @param {{ type: string, data?: Buffer }} event of `tradeFeedEvents$` */
  event(event) {
    if (event.type === 'gap') {
      this.gaps += 1;
      this.#isGapOpen = true;
    }
    if (event.type === 'frame') this.frame(numberOf(event.data));
  }

  /** @param {number} number */
  frame(number) {
    if (this.#first === undefined) {
      this.#first = number;
      this.last = number - 1;
    }
    if (number <= this.last) this.#violate(number === this.last ? 'twice' : 'out of order', number);
    else if (number > this.last + 1) {
      if (!this.#isGapOpen) this.#violate('missing without a gap', number);
      else this.missedInGaps += number - this.last - 1;
    }
    this.#isGapOpen = false;
    this.received += 1;
    this.last = Math.max(this.last, number);
  }

  /** Returns whether every number from the first to the last that was sent was received or reported in a gap. */
  isBalanced(sent) {
    return (
      this.violationCount === 0 &&
      this.last === sent &&
      this.received + this.missedInGaps === sent - (this.#first ?? 1) + 1
    );
  }

  #violate(rule, number) {
    this.violationCount += 1;
    if (this.violations.length < 10) this.violations.push({ rule, number });
  }
}

const start = '{"batch":'.length;

/** Reads the number in `{"batch":12,…`. */
export const numberOf = (data) => {
  let number = 0;
  for (let n = start; data[n] !== 0x2c; n += 1) number = number * 10 + (data[n] ?? 0) - 0x30;
  return number;
};
