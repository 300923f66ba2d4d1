/**
 * Reads the pixels of a candle: the height of its body at the left edge, and the number of coloured pixels between that edge and the wick.
 * A hollow candle is coloured only at its top and bottom.
 */
export const candlePixels = (page, start, lengthMs) =>
  page.locator('app-candle-chart').evaluate(
    (host, { start, lengthMs }) => {
      const canvas = host.querySelector('canvas');
      const over = host.querySelector('.u-over').getBoundingClientRect();
      const around = canvas.getBoundingClientRect();
      const { from, to } = host.querySelector('.plot').dataset;
      const scale = canvas.width / around.width;
      const left = (over.left - around.left) * scale;
      const xOf = (at) => left + ((at - Number(from)) / (Number(to) - Number(from))) * over.width * scale;
      const [begin, middle] = [Math.round(xOf(start)), Math.round(xOf(start + lengthMs / 2))];
      const style = getComputedStyle(document.documentElement);
      const colours = ['--accent', '--stop'].map((name) => {
        const context = new OffscreenCanvas(1, 1).getContext('2d');
        context.fillStyle = style.getPropertyValue(name).trim();
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data];
      });
      const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      const isCandle = (x, y) =>
        colours.some((colour) =>
          colour.every((part, index) => Math.abs(part - pixels[(y * canvas.width + x) * 4 + index]) < 40),
        );
      const heightAt = (x) => {
        let height = 0;
        for (let y = 0; y < canvas.height; y += 1) height += isCandle(x, y) ? 1 : 0;
        return height;
      };
      let edge = begin;
      while (edge < middle && heightAt(edge) === 0) edge += 1;
      return { body: heightAt(edge), inside: heightAt(Math.round((edge + middle) / 2)) };
    },
    { start, lengthMs },
  );
