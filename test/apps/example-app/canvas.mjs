/**
 * Reads the pixels of a chart. Returns the bands in the colour of an outage, from left to right, in pixels; the number of columns with the line
 * inside and outside of the bands; the column where the line begins; and the distance from the top to the end of the line.
 */
export const bandsOf = (page, figure) =>
  page.locator(`[data-figure="${figure}"] canvas`).evaluate((canvas) => {
    const style = getComputedStyle(document.documentElement);
    const swatch = (name) => {
      const context = new OffscreenCanvas(1, 1).getContext('2d');
      context.fillStyle = style.getPropertyValue(name).trim();
      context.fillRect(0, 0, 1, 1);
      return [...context.getImageData(0, 0, 1, 1).data];
    };
    const [fill, edge, line] = ['--outage-fill', '--outage-edge', '--accent'].map(swatch);
    const { width, height } = canvas;
    const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
    const isLike = (at, colour, tolerance) =>
      colour.every((part, index) => Math.abs(part - pixels[at + index]) <= tolerance);
    const counted = (x, colour, tolerance) => {
      let count = 0;
      for (let y = 0; y < height; y += 1) count += isLike((y * width + x) * 4, colour, tolerance) ? 1 : 0;
      return count;
    };
    // A column of a band has its colour in more than half of the pixels. Grid lines cover some of them.
    const isBand = (x) => counted(x, fill, 4) + counted(x, edge, 40) > height / 2;
    const hasLine = (x) => counted(x, line, 40) > 0;
    const bands = [];
    const lines = { inside: 0, outside: 0 };
    let lineFrom;
    let lineUntil;
    for (let x = 0; x < width; x += 1) {
      if (hasLine(x)) {
        lineFrom ??= x;
        lineUntil = x;
      }
      if (hasLine(x)) lines[isBand(x) ? 'inside' : 'outside'] += 1;
      if (!isBand(x)) continue;
      const last = bands.at(-1);
      if (last !== undefined && last.end === x) last.end = x + 1;
      else bands.push({ start: x, end: x + 1 });
    }
    const lastLineAt = Array.from({ length: height }, (_, y) => y).find((y) =>
      isLike((y * width + (lineUntil ?? 0)) * 4, line, 40),
    );
    return {
      bands: bands.map(({ start, end }) => ({ start, end, width: end - start })),
      lines,
      lineFrom,
      lastLineAt,
      width,
      height,
    };
  });
