const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** Says how many: `1,842`. */
export const count = (number: number): string => whole.format(number);

/** Says a number with the digits that matter: `20.1`, `1,842`. */
export const amount = (number: number): string => (number < 99.95 ? oneDigit : whole).format(number);

/** Says how many of a thing: `1 frame`, `20 frames`. */
export const counted = (number: number, thing: string): string => `${count(number)} ${thing}${number === 1 ? '' : 's'}`;

/** Says how many bytes, in steps of 1000: `421 B`, `8.4 kB`. */
export const bytes = (number: number): string => {
  if (number < 1_000) return `${count(number)} B`;
  const step = Math.min(4, Math.floor(Math.log10(number) / 3));
  return `${amount(number / 1_000 ** step)} ${'kMGT'.charAt(step - 1)}B`;
};

/** Says how long: `12 ms`, `3.2 s`, `30 s`, `1 min 05 s`, `2 h 03 min`. */
export const duration = (ms: number): string => {
  if (ms < 1_000) return `${count(ms)} ms`;
  if (ms < 9_950) return `${amount(ms / 1_000)} s`;
  if (ms < 59_500) return `${count(ms / 1_000)} s`;
  const s = Math.round(ms / 1_000);
  const [h, min] = [Math.floor(s / 3_600), Math.floor(s / 60) % 60];
  return h === 0 ? `${min} min ${padded(s % 60)} s` : `${count(h)} h ${padded(min)} min`;
};

/** Says how long as on a watch: `0:07`, `1:02:03`. */
export const watch = (ms: number): string => {
  const s = Math.max(0, Math.floor(ms / 1_000));
  const [h, min] = [Math.floor(s / 3_600), Math.floor(s / 60) % 60];
  return h === 0 ? `${min}:${padded(s % 60)}` : `${h}:${padded(min)}:${padded(s % 60)}`;
};

const padded = (number: number): string => String(number).padStart(2, '0');
