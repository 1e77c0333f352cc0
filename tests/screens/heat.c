/* Heat in a plate: each point becomes the mean of its neighbours. */
#include <stdlib.h>

enum { ROWS = 512, COLUMNS = 512 };

static double plate[2][ROWS][COLUMNS];

static double largest(double a, double b)
{
	return a > b ? a : b;
}

double step(double (*from)[COLUMNS], double (*to)[COLUMNS])
{
	double change = 0;
	for (int row = 1; row < ROWS - 1; row++)
		for (int column = 1; column < COLUMNS - 1; column++) {
			to[row][column] = (from[row - 1][column] + from[row + 1][column] + from[row][column - 1] + from[row][column + 1]) / 4;
			change = largest(change, to[row][column] - from[row][column]);
		}
	return change;
}

int main(int count, char **words)
{
	int steps = count > 1 ? atoi(words[1]) : 1000;
	for (int now = 0; now < steps; now++)
		if (step(plate[now % 2], plate[(now + 1) % 2]) < 1e-9)
			break;
	return plate[0][1][1] > 1;
}
