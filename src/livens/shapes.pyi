from livens.scene.shapes import *
