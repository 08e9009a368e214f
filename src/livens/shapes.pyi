from livens.models.shapes import *
