/**
 * Makes a text of somebody else harmless in a log and on a terminal: control characters become pictures (`␛`), what has none becomes `�`.
 *
 * Without this a feed or a close reason could begin a line of its own, move the cursor, set the title, or turn the text around.
 */
export const printable = (text: string): string =>
  text
    .replace(/[\u0000-\u001f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
    .replace(/\u007f/g, '␡')
    .replace(/[\u0080-\u009f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g, '�');
